# Records the memory history for vramscope, without the profiler: cheap enough for a whole run.
# Paste this at the start of your training script, then open the folder: vramscope @FOLDER@
import atexit
import os

import torch

FOLDER = @FOLDER@
RANK = int(os.environ.get("RANK", 0))
os.makedirs(FOLDER, exist_ok=True)


def dump(name="snapshot"):
    torch.cuda.memory._dump_snapshot(os.path.join(FOLDER, f"{name}_rank{RANK}.pickle"))


# A run without a GPU goes on unrecorded.
if torch.cuda.is_available():
    # The last @MAX_ENTRIES@ allocations and frees with their Python stacks.
    torch.cuda.memory._record_memory_history(max_entries=@MAX_ENTRIES@, stacks="python")
    # At the end of the run, and at an out-of-memory error, before Python unwinds.
    atexit.register(dump)
    torch._C._cuda_attach_out_of_memory_observer(lambda device, requested, total, free: dump("snapshot_at_oom"))
