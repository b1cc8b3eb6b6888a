//! What to try and what to change, by cause: the words of findings.

use crate::text::msg;

/// How to confirm a cause and what to change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Advice {
    pub confirm: &'static str,
    pub advice: &'static str,
    pub before: &'static str,
    pub after: &'static str,
}

pub(super) const SMALL_TENSORS: Advice = Advice {
    confirm: msg!(
        "Print len() of the lists and dicts that get a loss or a metric each step.\n\
              Store loss.item() instead and look whether the count stops growing."
    ),
    advice: msg!(
        "Keep Python numbers, not tensors: `.item()` when logging, or `.detach()` into one running tensor. On the GPU \
             this is next to nothing, but the graph behind each tensor stays in host memory."
    ),
    before: "losses.append(loss)",
    after: "losses.append(loss.item())",
};

pub(super) const KEPT_OUTPUTS: Advice = Advice {
    confirm: msg!(
        "Comment out the line that stores this tensor (append, dict entry, attribute) and run a few steps.\n\
              memory_allocated() at the end of each step should now stay level."
    ),
    advice: msg!(
        "Find what stores this tensor: a list of outputs, a metric's state, a cache. Keep a number, or the tensor on \
             the CPU without its graph, and bound the list."
    ),
    before: "outputs.append(out)",
    after: "outputs.append(out.detach().cpu())",
};

pub(super) const VALIDATION: Advice = Advice {
    confirm: msg!(
        "Run this forward pass under torch.no_grad() for a few steps.\n\
              memory_allocated() after it should rise only by the outputs that you keep."
    ),
    advice: msg!(
        "Nothing sends this pass backward, yet autograd saves its activations, and what you keep of it (a loss, an \
             output) keeps them all. Wrap validation in `torch.no_grad()` or `torch.inference_mode()`, and detach what \
             you store."
    ),
    before: "model.eval()\nout = model(x)\nouts.append(out)",
    after: "model.eval()\nwith torch.no_grad():\n    out = model(x)\nouts.append(out.cpu())",
};

pub(super) const AUX_LOSS: Advice = Advice {
    confirm: msg!(
        "Detach this pass's loss or output where it is stored or summed, and run a few steps.\n\
              If the growth stops, it was held with its graph; if not, look for other references."
    ),
    advice: msg!(
        "A loss or an output of this pass is stored without having been sent backward, so its graph stays. Add it to \
             the loss that you send backward, or detach it."
    ),
    before: "aux = criterion(aux_head(features), y)\naux_losses.append(aux)",
    after: "aux = criterion(aux_head(features), y)\naux_losses.append(aux.detach())  # or: loss = loss + 0.4 * aux",
};

pub(super) const RETAIN_GRAPH: Advice = Advice {
    confirm: msg!(
        "Drop retain_graph=True (or create_graph=True) from backward() and run a few steps.\n\
              If that raises, some tensor still carries the graph of an earlier step: detach it."
    ),
    advice: msg!(
        "The backward pass ran but did not free this graph, and something (a kept loss) refers to it. Call backward \
             once, without `retain_graph=True`, and store `loss.item()`."
    ),
    before: "loss.backward(retain_graph=True)\nlosses.append(loss)",
    after: "loss.backward()\nlosses.append(loss.item())",
};

pub(super) const GRAPH_CHAINED: Advice = Advice {
    confirm: msg!(
        "Detach the state that goes from one step to the next and run a few steps.\n\
              The time of backward() should stay level, and so should memory_allocated()."
    ),
    advice: msg!(
        "A value carried from step to step (a hidden state, a running average, a momentum buffer) brings its graph \
             along. Detach it at the border of each step."
    ),
    before: "out, hidden = model(x, hidden)",
    after: "out, hidden = model(x, hidden.detach())",
};

pub(super) const RUNNING_SUM: Advice = Advice {
    confirm: msg!(
        "Sum loss.item() (or loss.detach()) instead of the loss and run a few steps.\n\
              If memory_allocated() stays level, the sum held the graphs; if not, look for a list of losses."
    ),
    advice: msg!(
        "A running sum of tensors with graphs holds every step's graph. Sum numbers or detached tensors, or send the \
             loss backward in its own step."
    ),
    before: "total = total + aux_loss",
    after: "total = total + aux_loss.detach()",
};

pub(super) const BACKWARD_KEPT: Advice = Advice {
    confirm: msg!(
        "Run a few steps without create_graph=True.\n\
              If memory_allocated() stays level, gradients with graphs were kept."
    ),
    advice: msg!(
        "If you need second derivatives, delete the gradients (or set them to None) before the next step; else drop \
             `create_graph=True` and detach the gradients that you store."
    ),
    before: "loss.backward(create_graph=True)\ngrads.append(p.grad)",
    after: "loss.backward()\ngrads.append(p.grad.detach().cpu())",
};

pub(super) const CUSTOM_FUNCTION: Advice = Advice {
    confirm: msg!(
        "Use ctx.save_for_backward for every tensor in this function's forward, and run a few steps.\n\
              If memory_allocated() still rises, something else stores the tensor."
    ),
    advice: msg!(
        "Autograd frees what `ctx.save_for_backward` holds after backward. A tensor set as an attribute of ctx, or \
             stored outside, stays as long as the graph or forever."
    ),
    before: "ctx.probs = probs",
    after: "ctx.save_for_backward(probs)  # and: probs, = ctx.saved_tensors",
};

pub(super) const KEPT_ONCE: Advice = Advice {
    confirm: msg!(
        "Record on, past where it was made.\n\
              If the level doesn't rise again, it was kept once; if it does, it comes back at a longer interval."
    ),
    advice: msg!(
        "One step kept this and nothing freed it: results of a validation, a copy of the weights, a cache that was \
             filled. If it is no longer needed, drop the reference (`del`), or keep it on the CPU."
    ),
    before: "best = model.state_dict()",
    after: "best = {name: value.detach().cpu() for name, value in model.state_dict().items()}",
};

pub(super) const HOOK: Advice = Advice {
    confirm: msg!(
        "Remove the hook handles (handle.remove()) and run a few steps.\n\
              memory_allocated() at the end of each step should now stay level."
    ),
    advice: msg!(
        "A forward hook, or a cache inside the modules, stores outputs. Detach and copy what you need to the CPU, \
             clear the store each step, and remove handles that are no longer used."
    ),
    before: "def hook(module, inputs, output):\n    captured.append(output)",
    after: "def hook(module, inputs, output):\n    captured[name] = output.detach().mean().item()",
};

pub(super) const GROWING_TENSOR: Advice = Advice {
    confirm: msg!(
        "Print the shape of the tensor made on this line each step.\n\
              If a dimension grows, it is an accumulator."
    ),
    advice: msg!(
        "Joining onto a tensor each step copies it and makes it larger. Reduce as you go (a running sum or a \
             histogram), or collect on the CPU and join once."
    ),
    before: "seen = torch.cat([seen, out])",
    after: "seen.append(out.detach().cpu())  # torch.cat(seen) once at the end",
};

pub(super) const GROWING_INPUTS: Advice = Advice {
    confirm: msg!(
        "Print the input's shape each step beside max_memory_allocated().\n\
              Both should rise together."
    ),
    advice: msg!(
        "Nothing is kept: the steps themselves need more, since their tensors are larger. Bound the batch or the \
             sequence length, or sort by length so that the largest comes first."
    ),
    before: "batch = collate(samples)",
    after: "batch = collate(samples, max_length=512)",
};

pub(super) const SAW_TOOTH: Advice = Advice {
    confirm: msg!(
        "Call gc.collect() at the end of each step and look whether the level stays low.\n\
              If it does, reference cycles hold the tensors; if not, something is cleared now and then."
    ),
    advice: msg!(
        "This is freed in bulk, so it is no endless leak. Cycles (an exception's traceback, a closure or module that \
             refers to itself) wait for Python's collector: break them, or call `gc.collect()` at a good moment. A metric \
             that is reset each epoch looks the same."
    ),
    before: "",
    after: "",
};

pub(super) const FRAGMENTATION: Advice = Advice {
    confirm: msg!(
        "Run with PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.\n\
              memory_reserved() should stay near max_memory_allocated()."
    ),
    advice: msg!(
        "Blocks of many sizes leave free parts that no later request fits. Set `expandable_segments:True`, or make \
             sizes repeat: pad to a few lengths, drop the last partial batch."
    ),
    before: "python train.py",
    after: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py",
};

pub(super) const CACHE_ONLY: Advice = Advice {
    confirm: msg!(
        "Compare memory_allocated() with memory_reserved() at the end of each step.\n\
              The difference is the cache; it should stay level."
    ),
    advice: msg!(
        "Nothing to fix: PyTorch keeps freed memory for the next step, and nvidia-smi counts it as used. \
             `torch.cuda.empty_cache()` helps only when another process needs the memory; in a loop it costs time."
    ),
    before: "",
    after: "",
};

pub(super) const OTHER_PROCESS: Advice = Advice {
    confirm: msg!(
        "nvidia-smi --query-compute-apps=pid,used_memory --format=csv -l 1\n\
              Look which processes appear while memory grows."
    ),
    advice: msg!(
        "Each process that touches CUDA holds a context of some hundred MiB. Keep loader workers off the GPU: return \
             CPU tensors, move batches in the main process, and set the device before the first CUDA call."
    ),
    before: "def __getitem__(self, i):\n    return self.x[i].cuda()",
    after: "def __getitem__(self, i):\n    return self.x[i]  # x.cuda(non_blocking=True) in the training loop",
};

pub(super) const OUTSIDE_ALLOCATOR: Advice = Advice {
    confirm: msg!(
        "Log torch.cuda.mem_get_info() beside memory_reserved() each step.\n\
              The driver's figure should grow while reserved does not."
    ),
    advice: msg!(
        "The growth is memory that PyTorch's allocator didn't hand out: NCCL communicators, cuDNN and cuBLAS handles, \
             other libraries (DALI, cuDF, TensorRT, CuPy), or another process. Traces and snapshots can't show it."
    ),
    before: "",
    after: "",
};

pub(super) const TRUNCATED: Advice = Advice {
    confirm: msg!(
        "Record again with a larger max_entries, and look whether frees without an alloc are gone."
    ),
    advice: msg!("Start the history before the model is made, and give it room for the whole run."),
    before: "torch.cuda.memory._record_memory_history()",
    after: "torch.cuda.memory._record_memory_history(max_entries=10_000_000)",
};

pub(super) const TOO_SHORT: Advice = Advice {
    confirm: msg!("Record ten steps or more after warm-up."),
    advice: msg!("Growth shows from step to step: record more of them."),
    before: "schedule=torch.profiler.schedule(wait=1, warmup=1, active=2)",
    after: "schedule=torch.profiler.schedule(wait=1, warmup=1, active=10)",
};

pub(super) const NO_MEMORY_EVENTS: Advice = Advice {
    confirm: msg!("Open the new file here: it should show allocations."),
    advice: msg!("Record a memory snapshot: it knows every allocation with its Python stack."),
    before: "with torch.profiler.profile() as prof: …",
    after: "torch.cuda.memory._record_memory_history(max_entries=1_000_000)\n\
            …  # some steps\n\
            torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")",
};

pub(super) const NO_PROFILED_MEMORY: Advice = Advice {
    confirm: msg!("Open the new trace here: it should show allocations."),
    advice: msg!("The profiler ran without memory events: turn them on, or record a memory snapshot."),
    before: "with torch.profiler.profile() as prof: …",
    after: "with torch.profiler.profile(profile_memory=True, record_shapes=True, with_stack=True) as prof: …",
};

pub(super) const OUT_OF_MEMORY: Advice = Advice {
    confirm: msg!(
        "Run again with a smaller batch: if it fails later at the same level, something grows.\n\
              If it runs on, one step simply needs more than there is."
    ),
    advice: msg!(
        "See what was live at the moment (Live, at the marker). If the finding below says what grows, fix that first; \
             else use a smaller batch, mixed precision or activation checkpointing."
    ),
    before: "",
    after: "",
};

pub(super) const PENDING_FREE: Advice = Advice {
    confirm: msg!("Synchronize the side stream once a step and look whether the pending bytes go."),
    advice: msg!(
        "A block given to another stream with `record_stream` comes back only when that stream has caught up. Let the \
             side stream wait less, or hand over ownership with events."
    ),
    before: "",
    after: "",
};

pub(super) const PRIVATE_POOL: Advice = Advice {
    confirm: msg!("Capture fewer shapes and look whether the pool shrinks."),
    advice: msg!(
        "CUDA graphs keep their blocks so that replays find them at the same address: expected, once per captured \
             shape. Share one pool between graphs, and limit how many shapes are captured."
    ),
    before: "with torch.cuda.graph(g):",
    after: "with torch.cuda.graph(g, pool=first_graph.pool()):",
};

pub(super) const GRADIENTS: Advice = Advice {
    confirm: msg!(
        "Look at memory_allocated() after optimizer.zero_grad(set_to_none=True): the gradients are gone."
    ),
    advice: msg!("Nothing to fix. One gradient for each parameter is what training needs."),
    before: "",
    after: "",
};

pub(super) const LEVEL: Advice = Advice {
    confirm: msg!("Record for longer, over an epoch's end and a validation, if growth is rare."),
    advice: msg!("Nothing to fix."),
    before: "",
    after: "",
};

pub(super) const EXPECTED: Advice = Advice {
    confirm: msg!("It is made once: it should not grow in later steps."),
    advice: msg!("Nothing to fix."),
    before: "",
    after: "",
};
