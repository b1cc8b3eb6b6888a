# Records what vramscope opens. Save it as vramscope_record.py beside your training script, then:
#
#     from vramscope_record import Recorder
#
#     with Recorder() as recorder:
#         for batch in loader:
#             ...                 # one training step
#             recorder.step()
#
# and open the folder: vramscope @FOLDER@
# Cost: a few percent of speed, more in the @STEPS@ steps that the profiler records.
import os
import shutil
import subprocess

import torch

FOLDER = @FOLDER@
RANK = int(os.environ.get("RANK", 0))
LOCAL_RANK = int(os.environ.get("LOCAL_RANK", 0))
# Without a GPU the profiler still tells of the CPU's memory.
HAS_GPU = torch.cuda.is_available()


class Recorder:
    def __enter__(self):
        os.makedirs(FOLDER, exist_ok=True)
        if HAS_GPU:
            # Every allocation and free with its Python stack, from now on.
            torch.cuda.memory._record_memory_history(max_entries=@MAX_ENTRIES@, stacks="python")
            torch._C._cuda_attach_out_of_memory_observer(self._out_of_memory)
        self._log = self._start_nvidia_smi()
        self._profiler = torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=@AFTER@, warmup=1, active=@STEPS@, repeat=1),
            on_trace_ready=lambda profiler: profiler.export_chrome_trace(self._path("trace", "json.gz")),
            profile_memory=True,
            record_shapes=True,
            with_stack=True,
            with_modules=True,
        )
        self._profiler.__enter__()
        return self

    def step(self):
        self._profiler.step()

    def __exit__(self, kind, error, traceback):
        self._profiler.__exit__(kind, error, traceback)
        if HAS_GPU:
            torch.cuda.memory._dump_snapshot(self._path("snapshot", "pickle"))
            with open(self._path("memory_summary", "txt"), "w") as file:
                file.write(torch.cuda.memory_summary())
            torch.cuda.memory._record_memory_history(enabled=None)
        if self._log is not None:
            self._log.terminate()
            self._log.wait()

    def _path(self, name, extension):
        return os.path.join(FOLDER, f"{name}_rank{RANK}.{extension}")

    def _out_of_memory(self, device, requested, total, free):
        # The state at the moment of the error, which is gone once Python unwinds.
        torch.cuda.memory._dump_snapshot(self._path("snapshot_at_oom", "pickle"))

    def _start_nvidia_smi(self):
        # What the driver sees; one process a host is enough.
        if LOCAL_RANK != 0 or shutil.which("nvidia-smi") is None:
            return None
        query = "--query-gpu=timestamp,index,uuid,memory.used,memory.total,utilization.gpu"
        with open(self._path("nvidia-smi", "csv"), "w") as file:
            return subprocess.Popen(["nvidia-smi", query, "--format=csv", "-lms", "200"], stdout=file)
