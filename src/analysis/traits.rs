//! What the library frames of a stack tell: optimizer, module, autograd engine, custom function, hook, workspace.
//!
//! Only PyTorch's own files and functions are matched, never the user's names (save `forward`, which PyTorch calls).

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::{FrameOrigin, UserCode};
use crate::model::{Frame, StackId, Stacks, StrId, Strings};

/// The facts of one stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackTraits {
    /// A number that stacks with the same Python frames share, whatever their native frames; 0 without Python.
    pub python_key: u64,
    /// Whether any frame is Python's.
    pub has_python: bool,
    /// Whether the user's own code is in it.
    pub has_user: bool,
    /// Whether the innermost Python frame is the user's own.
    pub is_user_innermost: bool,
    /// Inside an optimizer.
    pub in_optimizer: bool,
    /// Inside the call of an `nn.Module`.
    pub in_module: bool,
    /// Moving, copying or initializing a module: where parameters are made.
    pub in_module_setup: bool,
    /// On the autograd engine's thread, as native frames show.
    pub in_engine: bool,
    /// Inside the user's part of a `torch.autograd.Function`.
    pub in_custom_function: bool,
    /// Inside the user's hook of a module.
    pub in_hook: bool,
    /// The innermost module runs with hooks.
    pub is_hooked: bool,
    /// Inside batch norm.
    pub in_batch_norm: bool,
    /// A workspace that cuBLAS or cuDNN asks for, as native frames show.
    pub in_workspace: bool,
    /// The innermost Python frame.
    last: Last,
}

/// What the innermost Python frame was, for the frame that comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Other,
    ModuleCall,
    ModuleCallWithHooks,
    AutogradFunction,
}

/// What a file is to PyTorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileRole {
    User,
    Native,
    Optimizer,
    ModuleBase,
    Module,
    BatchNorm,
    Parameter,
    AutogradFunction,
    /// The profiler's own frames, which traces leave open from one step to the next.
    Profiler,
    Library,
}

/// The traits of every stack of a table, by the stack's id.
pub fn traits_of_stacks(strings: &Strings, stacks: &Stacks, user_code: &UserCode) -> Vec<StackTraits> {
    let mut roles: FxHashMap<StrId, FileRole> = FxHashMap::default();
    let mut traits: Vec<StackTraits> = Vec::with_capacity(stacks.len());
    traits.push(StackTraits::default());
    for id in (1..stacks.len() as u32).map(StackId) {
        let Some(frame) = stacks.innermost(id) else {
            traits.push(StackTraits::default());
            continue;
        };
        let role = *roles.entry(frame.file).or_insert_with(|| file_role(strings, frame, user_code));
        // A caller's stack always stands before its callees'.
        let caller = traits.get(stacks.caller(id).0 as usize).copied().unwrap_or_default();
        traits.push(caller.with(frame, role, strings.get(frame.function)));
    }
    traits
}

fn file_role(strings: &Strings, frame: Frame, user_code: &UserCode) -> FileRole {
    match user_code.origin(strings, frame) {
        FrameOrigin::User => return FileRole::User,
        FrameOrigin::Native => return FileRole::Native,
        FrameOrigin::Library | FrameOrigin::Generated => {}
    }
    let path = strings.get(frame.file).replace('\\', "/");
    if path.ends_with("torch/nn/modules/module.py") {
        FileRole::ModuleBase
    } else if path.ends_with("torch/nn/modules/batchnorm.py") {
        FileRole::BatchNorm
    } else if path.contains("torch/nn/modules/") {
        FileRole::Module
    } else if path.ends_with("torch/nn/parameter.py") || path.ends_with("torch/nn/init.py") {
        FileRole::Parameter
    } else if path.contains("torch/profiler/")
        || path.ends_with("torch/autograd/profiler.py")
        || path.ends_with("torch/_ops.py")
    {
        FileRole::Profiler
    } else if path.ends_with("torch/autograd/function.py") {
        FileRole::AutogradFunction
    } else if path.contains("/optim/") || path.starts_with("optim/") || path.contains("/optimizers/") {
        FileRole::Optimizer
    } else {
        FileRole::Library
    }
}

impl StackTraits {
    /// The traits of this stack with a frame called from it.
    fn with(mut self, frame: Frame, role: FileRole, function: &str) -> Self {
        if role == FileRole::Native {
            self.in_engine |= function.contains("torch::autograd::Engine::");
            self.in_workspace |= ["setWorkspaceForHandle", "Workspace(", "cudnn_workspace"]
                .iter()
                .any(|mark| function.contains(mark));
            return self;
        }
        if role == FileRole::Profiler {
            return self;
        }
        let mut hasher = FxHasher::default();
        (self.python_key, frame).hash(&mut hasher);
        self.python_key = hasher.finish().max(1);
        self.has_python = true;
        self.is_user_innermost = role == FileRole::User;
        let last = std::mem::take(&mut self.last);
        match role {
            FileRole::User => {
                self.has_user = true;
                self.in_custom_function |= last == Last::AutogradFunction;
                let from_module = matches!(last, Last::ModuleCall | Last::ModuleCallWithHooks);
                self.in_hook |= from_module && function != "forward";
            }
            FileRole::Optimizer => self.in_optimizer = true,
            FileRole::ModuleBase => {
                let is_setup = matches!(function, "_apply" | "cuda" | "to" | "convert" | "__deepcopy__");
                self.in_module_setup |= is_setup;
                self.last = match function {
                    "inner" => Last::ModuleCallWithHooks,
                    "_call_impl" | "_wrapped_call_impl" => Last::ModuleCall,
                    _ => Last::Other,
                };
                self.in_module |= self.last != Last::Other;
            }
            FileRole::Parameter => self.in_module_setup = true,
            FileRole::BatchNorm => self.in_batch_norm = true,
            FileRole::AutogradFunction => self.last = Last::AutogradFunction,
            FileRole::Module | FileRole::Library | FileRole::Native | FileRole::Profiler => {}
        }
        if function == "forward" {
            match last {
                Last::ModuleCallWithHooks => self.is_hooked = true,
                Last::ModuleCall => self.is_hooked = false,
                Last::Other | Last::AutogradFunction => {}
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The traits of a stack, innermost frame first.
    fn traits(frames: &[(&str, &str)]) -> StackTraits {
        let (mut strings, mut stacks) = (Strings::default(), Stacks::default());
        let ids: Vec<_> = frames
            .iter()
            .map(|(file, function)| {
                let frame = Frame { file: strings.intern(file), function: strings.intern(function), line: 1 };
                stacks.intern_frame(frame)
            })
            .collect();
        let stack = stacks.intern_innermost_first(&ids);
        traits_of_stacks(&strings, &stacks, &UserCode::default())[stack.0 as usize]
    }

    #[test]
    fn library_frames_tell_what_a_stack_is() {
        let optimizer = traits(&[("/v/site-packages/torch/optim/adam.py", "_init_group"), ("/u/a.py", "go")]);
        assert!(optimizer.in_optimizer && !optimizer.in_module && !optimizer.is_user_innermost);
        let custom = traits(&[
            ("/u/a.py", "forward"),
            ("/v/site-packages/torch/autograd/function.py", "apply"),
            ("/u/a.py", "go"),
        ]);
        assert!(custom.in_custom_function && custom.is_user_innermost);
        let module = "/v/site-packages/torch/nn/modules/module.py";
        let hooked = traits(&[
            ("/v/site-packages/torch/nn/modules/activation.py", "forward"),
            (module, "inner"),
            (module, "_call_impl"),
            ("/u/a.py", "go"),
        ]);
        assert!(hooked.is_hooked && hooked.in_module && !hooked.in_hook);
        let in_hook = traits(&[("/u/a.py", "save"), (module, "inner"), (module, "_call_impl")]);
        assert!(in_hook.in_hook);
        let forward = traits(&[("/u/a.py", "forward"), (module, "_call_impl"), (module, "inner")]);
        assert!(!forward.in_hook && !forward.is_hooked);
    }

    #[test]
    fn native_frames_do_not_change_the_python_key() {
        let native = ("", "at::detail::empty_cuda(long)");
        let with = traits(&[native, ("/u/a.py", "go")]);
        let without = traits(&[("/u/a.py", "go")]);
        assert_ne!(with.python_key, 0);
        assert!(with.is_user_innermost && without.is_user_innermost);
        assert!(!traits(&[native]).has_python);
        assert!(traits(&[("??", "torch::autograd::Engine::thread_main(x)")]).in_engine);
    }
}
