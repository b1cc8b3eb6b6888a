//! The likely shape and type of the tensor behind an allocation, from the inputs of the ops around it and its bytes.
//!
//! A trace records the inputs of ops, not their outputs. Where the output's shape follows from them and the bytes agree,
//! it is told together with the rule; else nothing is.

use crate::text::t;
use serde_json::Value;

/// Ops further out than this say little of the tensor.
const MAX_OPS: usize = 6;

/// CUDA's allocator rounds to this many bytes.
const BLOCK_BYTES: u64 = 512;

/// The CPU's allocator aligns to this many bytes; the trace has the size before or after.
const HOST_ALIGN_BYTES: u64 = 64;

/// What a trace records of an op's inputs, as JSON text.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OpInputs<'a> {
    pub name: &'a str,
    pub dims: &'a str,
    pub types: &'a str,
    pub concrete: &'a str,
}

/// What was inferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Inferred {
    /// `[8, 64, 128, 128] float`.
    pub tensor: String,
    /// `size given to aten::empty`.
    pub rule: String,
}

/// Whether the values of an op's other inputs tell the shape that it makes.
pub(super) fn needs_concrete_inputs(name: &str) -> bool {
    let op = name.strip_prefix("aten::").unwrap_or(name);
    makes_size(op) || op.contains("conv") || op.contains("pool") || op == "cat"
}

/// Ops that are given the size of the tensor that they make.
fn makes_size(op: &str) -> bool {
    ["empty", "zeros", "ones", "full", "rand", "resize_", "new_"].iter().any(|prefix| op.starts_with(prefix))
}

/// The likely tensor in `bytes` that was allocated under these ops, innermost first.
pub(super) fn tensor<'a>(
    ops: impl Iterator<Item = OpInputs<'a>>,
    bytes: u64,
    is_host: bool,
) -> Option<Inferred> {
    let block = BlockSize { bytes, is_host };
    ops.take(MAX_OPS).find_map(|op| {
        let short = op.name.strip_prefix("aten::").unwrap_or(op.name);
        let inputs = Inputs::parse(&op);
        let found = if makes_size(short) {
            inputs.of_given_size(block).map(|found| (found, t!("size given to {op}", op = op.name)))
        } else {
            None
        };
        let (tensor, rule) = found
            .or_else(|| {
                let found = if short.contains("conv") && !short.contains("backward") {
                    inputs.of_convolution(block)
                } else {
                    inputs.of_product(short, block)
                };
                found.map(|found| (found, t!("output of {op} for its inputs", op = op.name)))
            })
            .or_else(|| {
                let (found, input) = inputs.like_an_input(block)?;
                Some((found, t!("same size as input {input} of {op}", input, op = op.name)))
            })
            .or_else(|| {
                let found = inputs.broadcast(block)?;
                Some((found, t!("inputs of {op} broadcast together", op = op.name)))
            })?;
        Some(Inferred { tensor: format!("{:?} {}", tensor.0, tensor.1), rule })
    })
}

/// A shape and the name of a type.
type Tensor = (Vec<u64>, String);

#[derive(Clone, Copy)]
struct BlockSize {
    bytes: u64,
    is_host: bool,
}

impl BlockSize {
    /// Whether `size_bytes` takes exactly this block.
    fn is(self, size_bytes: u64) -> bool {
        if size_bytes == 0 {
            return false;
        }
        if self.is_host {
            self.bytes == size_bytes
                || size_bytes.checked_next_multiple_of(HOST_ALIGN_BYTES) == Some(self.bytes)
        } else {
            size_bytes.checked_next_multiple_of(BLOCK_BYTES) == Some(self.bytes)
        }
    }

    /// Whether `size_bytes` may take this block when nothing else can: a large block is not split when less than a
    /// MiB would be left.
    fn holds(self, size_bytes: u64) -> bool {
        const LARGE: u64 = 1 << 20;
        self.is(size_bytes)
            || (!self.is_host
                && size_bytes >= LARGE
                && (size_bytes..=size_bytes + LARGE).contains(&self.bytes))
    }

    /// Whether the size says enough: all that is smaller shares one block size.
    fn is_telling(self, size_bytes: u64) -> bool {
        self.is_host || self.bytes > BLOCK_BYTES || size_bytes > BLOCK_BYTES / 2
    }
}

/// One input: a tensor's shape, or nothing that has one.
#[derive(Default)]
struct Input {
    shape: Option<Vec<u64>>,
    kind: String,
    concrete: Option<Concrete>,
}

/// A value among `Concrete Inputs`.
enum Concrete {
    List(Vec<u64>),
    Number(u64),
}

#[derive(Default)]
struct Inputs {
    list: Vec<Input>,
}

impl Inputs {
    fn parse(op: &OpInputs<'_>) -> Self {
        let list = |text: &str| match serde_json::from_str(text) {
            Ok(Value::Array(list)) => list,
            _ => Vec::new(),
        };
        let (dims, kinds, concrete) = (list(op.dims), list(op.types), list(op.concrete));
        let count = dims.len().max(concrete.len()).min(64);
        let kind_at = |index: usize| kinds.get(index).and_then(Value::as_str).unwrap_or_default();
        let inputs = (0..count).map(|index| {
            let kind = kind_at(index);
            let is_tensor = item_bytes(kind).is_some();
            Input {
                shape: dims.get(index).and_then(shape_of).filter(|shape| is_tensor || !shape.is_empty()),
                kind: kind.to_owned(),
                concrete: concrete.get(index).and_then(Value::as_str).and_then(concrete_of),
            }
        });
        Self { list: inputs.collect() }
    }

    /// The inputs that are tensors, with their sizes in bytes.
    fn tensors(&self) -> impl Iterator<Item = (usize, &Vec<u64>, &str, u64)> {
        self.list.iter().enumerate().filter_map(|(index, input)| {
            let shape = input.shape.as_ref()?;
            Some((index, shape, input.kind.as_str(), size_bytes(shape, item_bytes(&input.kind)?)?))
        })
    }

    fn lists(&self) -> impl Iterator<Item = &Vec<u64>> {
        self.list.iter().filter_map(|input| match &input.concrete {
            Some(Concrete::List(list)) => Some(list),
            _ => None,
        })
    }

    /// `aten::empty(size, dtype, …)`, `aten::empty_strided(size, stride, dtype, …)`, `aten::resize_(self, size)`.
    fn of_given_size(&self, block: BlockSize) -> Option<Tensor> {
        let shape = self.lists().next()?;
        let of_self = self.tensors().next().map(|(_, _, kind, _)| kind.to_owned());
        let of_numbers = self.list.iter().filter_map(|input| match input.concrete {
            Some(Concrete::Number(number)) => scalar_type(number).map(str::to_owned),
            _ => None,
        });
        let candidates = of_self.into_iter().chain(of_numbers).chain(std::iter::once("float".to_owned()));
        candidates
            .filter_map(|kind| Some((size_bytes(shape, item_bytes(&kind)?)?, kind)))
            .find(|&(size_bytes, _)| block.holds(size_bytes))
            .map(|(_, kind)| (shape.clone(), kind))
    }

    /// The output of a convolution, from the shapes of input and weight and the lists of stride, padding and dilation.
    fn of_convolution(&self, block: BlockSize) -> Option<Tensor> {
        let mut tensors = self.tensors();
        let (_, input, kind, _) = tensors.next()?;
        let (_, weight, ..) = tensors.next()?;
        let spatial = input.len().checked_sub(2)?;
        if weight.len() != input.len() || spatial == 0 {
            return None;
        }
        let lists: Vec<&Vec<u64>> = self.lists().filter(|list| list.len() == spatial).take(3).collect();
        let &[first, second, ..] = lists.as_slice() else { return None };
        let ones = vec![1; spatial];
        let dilation = lists.get(2).copied().unwrap_or(&ones);
        // Which of the two comes first depends on the op.
        [(first, second, dilation), (second, first, dilation), (dilation, first, &ones)].into_iter().find_map(
            |(stride, padding, dilation)| {
                let mut shape = vec![*input.first()?, *weight.first()?];
                for axis in 0..spatial {
                    let reach =
                        dilation[axis].checked_mul(weight[axis + 2].checked_sub(1)?)?.checked_add(1)?;
                    let padded = input[axis + 2].checked_add(padding[axis].checked_mul(2)?)?;
                    shape.push(padded.checked_sub(reach)?.checked_div(stride[axis])? + 1);
                }
                let size_bytes = size_bytes(&shape, item_bytes(kind)?)?;
                block.holds(size_bytes).then(|| (shape, kind.to_owned()))
            },
        )
    }

    /// The output of a product of matrices.
    fn of_product(&self, op: &str, block: BlockSize) -> Option<Tensor> {
        let tensors: Vec<_> = self.tensors().collect();
        let skip = match op {
            "mm" | "bmm" | "matmul" | "linear" => 0,
            "addmm" | "baddbmm" => 1,
            _ => return None,
        };
        let (&(_, a, kind, _), &(_, b, ..)) = (tensors.get(skip)?, tensors.get(skip + 1)?);
        let (last, rows) = a.split_last()?;
        let (columns, inner) = match (op, b.as_slice()) {
            ("linear", &[columns, inner]) => (columns, inner),
            (_, &[.., inner, columns]) => (columns, inner),
            _ => return None,
        };
        if inner != *last {
            return None;
        }
        let mut shape = rows.to_vec();
        shape.push(columns);
        block.holds(size_bytes(&shape, item_bytes(kind)?)?).then(|| (shape, kind.to_owned()))
    }

    /// The first input of the same size: outputs and gradients mostly look like one.
    fn like_an_input(&self, block: BlockSize) -> Option<(Tensor, usize)> {
        self.tensors()
            .find(|&(_, _, _, size_bytes)| block.is(size_bytes) && block.is_telling(size_bytes))
            .map(|(index, shape, kind, _)| ((shape.clone(), kind.to_owned()), index))
    }

    fn broadcast(&self, block: BlockSize) -> Option<Tensor> {
        let tensors: Vec<_> = self.tensors().collect();
        let &(_, _, kind, _) = tensors.first()?;
        if tensors.len() < 2 {
            return None;
        }
        let rank = tensors.iter().map(|(_, shape, ..)| shape.len()).max()?;
        let mut shape = vec![1_u64; rank];
        for (_, of_input, ..) in &tensors {
            for (axis, &length) in of_input.iter().rev().enumerate() {
                let slot = &mut shape[rank - 1 - axis];
                match (*slot, length) {
                    (1, length) => *slot = length,
                    (_, 1) => {}
                    (known, length) if known == length => {}
                    _ => return None,
                }
            }
        }
        let size_bytes = size_bytes(&shape, item_bytes(kind)?)?;
        (block.is(size_bytes) && block.is_telling(size_bytes)).then(|| (shape, kind.to_owned()))
    }
}

/// A shape; lists of tensors have none.
fn shape_of(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(Value::as_u64).collect()
}

fn concrete_of(text: &str) -> Option<Concrete> {
    if let Some(list) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let list: Option<Vec<u64>> = list.split(',').map(|number| number.trim().parse().ok()).collect();
        return list.map(Concrete::List);
    }
    text.parse().ok().map(Concrete::Number)
}

fn size_bytes(shape: &[u64], item_bytes: u64) -> Option<u64> {
    shape.iter().try_fold(item_bytes, |bytes, &length| bytes.checked_mul(length))
}

/// Bytes of an element, by the names that traces use for types.
fn item_bytes(kind: &str) -> Option<u64> {
    Some(match kind.strip_prefix("c10::").unwrap_or(kind) {
        "bool" | "unsigned char" | "signed char" | "char" => 1,
        "short" | "short int" | "unsigned short" | "Half" | "BFloat16" => 2,
        "int" | "unsigned int" | "float" => 4,
        "long" | "long int" | "double" | "complex<float>" => 8,
        "complex<double>" => 16,
        kind if kind.starts_with("Float8") => 1,
        _ => return None,
    })
}

/// `c10::ScalarType` by number, in the names that traces use.
fn scalar_type(number: u64) -> Option<&'static str> {
    Some(match number {
        0 => "unsigned char",
        1 => "signed char",
        2 => "short",
        3 => "int",
        4 => "long int",
        5 => "c10::Half",
        6 => "float",
        7 => "double",
        9 => "c10::complex<float>",
        10 => "c10::complex<double>",
        11 => "bool",
        15 => "c10::BFloat16",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn infer(ops: &[(&str, &str, &str, &str)], bytes: u64, is_host: bool) -> Option<(String, String)> {
        let ops = ops.iter().map(|&(name, dims, types, concrete)| OpInputs { name, dims, types, concrete });
        tensor(ops, bytes, is_host).map(|found| (found.tensor, found.rule))
    }

    fn of(tensor: &str, rule: &str) -> (String, String) {
        (tensor.to_owned(), rule.to_owned())
    }

    #[test]
    fn sizes_that_ops_are_given() {
        let empty =
            ("aten::empty", "[[], []]", r#"["ScalarList", "Scalar"]"#, r#"["[5, 256, 1, 1]", "6", "0"]"#);
        assert_eq!(
            infer(&[empty], 5120, false),
            Some(of("[5, 256, 1, 1] float", "size given to aten::empty"))
        );
        let half = ("aten::empty_strided", "[[]]", r#"["ScalarList"]"#, r#"["[3, 5]", "[5, 1]", "15", "0"]"#);
        assert_eq!(
            infer(&[half], 30, true),
            Some(of("[3, 5] c10::BFloat16", "size given to aten::empty_strided"))
        );
        let resize =
            ("aten::resize_", "[[7], []]", r#"["long int", "ScalarList"]"#, r#"["", "[100, 100]", ""]"#);
        assert_eq!(
            infer(&[resize], 80_384, false),
            Some(of("[100, 100] long int", "size given to aten::resize_"))
        );
        assert_eq!(infer(&[resize], 81_920, false), None, "nothing fits");
        let large = ("aten::empty", "[]", "[]", r#"["[1000, 1000]", "6"]"#);
        assert!(infer(&[large], 4_500_992, false).is_some(), "a block that was not split");
    }

    #[test]
    fn outputs_that_follow_from_inputs() {
        let conv = (
            "aten::cudnn_convolution",
            "[[2, 3, 192, 192], [64, 3, 7, 7], [], [], []]",
            r#"["float", "float", "ScalarList", "ScalarList", "ScalarList"]"#,
            r#"["", "", "[3, 3]", "[2, 2]", "[1, 1]", "1"]"#,
        );
        assert_eq!(
            infer(&[conv], 2 * 64 * 96 * 96 * 4, false),
            Some(of("[2, 64, 96, 96] float", "output of aten::cudnn_convolution for its inputs"))
        );
        let addmm = ("aten::addmm", "[[10], [8, 20], [20, 10]]", r#"["float", "float", "float"]"#, "");
        assert_eq!(
            infer(&[addmm], 320, true),
            Some(of("[8, 10] float", "output of aten::addmm for its inputs"))
        );
        let linear =
            ("aten::linear", "[[4, 8, 20], [10, 20], [10]]", r#"["double", "double", "double"]"#, "");
        assert_eq!(
            infer(&[linear], 2560, true),
            Some(of("[4, 8, 10] double", "output of aten::linear for its inputs"))
        );
    }

    #[test]
    fn like_inputs_of_the_ops_around() {
        let inner = ("aten::empty_like", "", "", "");
        let relu = ("aten::relu", "[[32, 100]]", r#"["float"]"#, "");
        assert_eq!(
            infer(&[inner, relu], 12_800, false),
            Some(of("[32, 100] float", "same size as input 0 of aten::relu"))
        );
        let add = ("aten::add", "[[32, 1], [1, 100], []]", r#"["float", "float", "Scalar"]"#, "");
        assert_eq!(
            infer(&[add], 12_800, false),
            Some(of("[32, 100] float", "inputs of aten::add broadcast together"))
        );
        // A block of 512 bytes holds anything small: no guess.
        let sum = ("aten::sum", "[[3]]", r#"["float"]"#, "");
        assert_eq!(infer(&[sum], 512, false), None);
        let odd = ("aten::x", "[[18446744073709551615, 9], [[1, 2]], 3, null]", r#"["float", 1]"#, "[[");
        assert_eq!(infer(&[odd], 512, false), None);
    }
}
