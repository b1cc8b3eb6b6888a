//! What a query may ask for. One that would fill the stack or the memory is refused before it runs: polars would take
//! the whole program with it.

use std::ops::ControlFlow;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use polars::lazy::dsl::DslPlan;
use polars::prelude::{DataType, Expr, JoinType, LazyFrame, Operator, PolarsResult, all, col, len};
use sqlparser::ast::{
    Expr as Term, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Query, SetExpr,
    Visit as _, Visitor,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserOptions};

use super::sql::unanswerable;
use crate::model::format_count;
use crate::text::t;

/// As long as an `IN` of tens of thousands of numbers.
const MAX_BYTES: usize = 256 << 10;
/// Terms within terms: `a OR b OR c` is three deep. Polars' memory grows with the square.
const MAX_DEPTH: usize = 1_000;
/// Terms next to each other.
const MAX_TERMS: usize = 50_000;
/// Tables, subqueries and SELECTs. Polars' time grows with the square.
const MAX_PARTS: usize = 200;
/// How many times as long all of a query's REPLACE may make a text.
const MAX_GROWTH: f64 = 100.0;
/// Joins give no more rows than this, unless each row of both sides finds at most one.
const MAX_JOINED_ROWS: f64 = 5e6;
/// Tables below each other give no more rows than this.
const MAX_ROWS: f64 = 1e8;
/// So many nodes of a plan are looked at: tables named in WITH stand in it as often as they are used.
const MAX_NODES: usize = 20_000;
/// An inequality is tried on so many pairs of rows.
const TRIED_PAIRS: f64 = 1e7;

/// Refuses a text that is too long, too deep, or calls what fills the memory.
pub(super) fn check_text(sql: &str) -> anyhow::Result<()> {
    if sql.len() > MAX_BYTES {
        bail!(t!("the query is longer than {count} bytes", count = format_count(MAX_BYTES as u64)));
    }
    // As polars parses it.
    let options = ParserOptions { trailing_commas: true, ..ParserOptions::default() };
    let statements = Parser::new(&GenericDialect)
        .with_options(options)
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_statements())
        .context(t!("this is not SQL"))?;
    match statements.visit(&mut Shape::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(why) => bail!(why),
    }
}

/// What has been met so far.
#[derive(Default)]
struct Shape {
    depth: usize,
    terms: usize,
    parts: usize,
    growth: f64,
}

impl Visitor for Shape {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        self.add_parts(1 + unions(&query.body))
    }

    fn pre_visit_relation(&mut self, _: &ObjectName) -> ControlFlow<String> {
        self.add_parts(1)
    }

    fn pre_visit_expr(&mut self, term: &Term) -> ControlFlow<String> {
        (self.depth, self.terms) = (self.depth + 1, self.terms + 1);
        if self.depth > MAX_DEPTH || self.terms > MAX_TERMS {
            let (terms, depth) = (format_count(MAX_TERMS as u64), format_count(MAX_DEPTH as u64));
            return ControlFlow::Break(t!(
                "the query has too many terms: {terms} may stand in it, {depth} of them in one chain",
                terms,
                depth
            ));
        }
        if let Term::Function(function) = term {
            self.check_call(function)
        } else {
            ControlFlow::Continue(())
        }
    }

    fn post_visit_expr(&mut self, _: &Term) -> ControlFlow<String> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

impl Shape {
    fn add_parts(&mut self, count: usize) -> ControlFlow<String> {
        self.parts += count;
        if self.parts <= MAX_PARTS {
            return ControlFlow::Continue(());
        }
        let count = MAX_PARTS;
        ControlFlow::Break(t!("the query has more than {count} tables, subqueries and UNIONs", count))
    }

    fn check_call(&mut self, function: &Function) -> ControlFlow<String> {
        let last = function.name.0.last().and_then(|part| part.as_ident());
        let name = last.map(|ident| ident.value.to_uppercase()).unwrap_or_default();
        match name.as_str() {
            "LPAD" | "RPAD" => {
                ControlFlow::Break(t!("{name} could fill the memory, so it is not allowed", name))
            }
            "ARRAY_AGG" | "STRING_AGG" | "LISTAGG" | "GROUP_CONCAT" if function.over.is_some() => {
                let name = format!("{name} … OVER");
                ControlFlow::Break(t!("{name} could fill the memory, so it is not allowed", name))
            }
            "REPLACE" => {
                self.growth = self.growth.max(1.0) * growth(function);
                if self.growth <= MAX_GROWTH {
                    return ControlFlow::Continue(());
                }
                ControlFlow::Break(t!(
                    "REPLACE puts in quoted text only, and a query's REPLACE may make a text {count} times as long",
                    count = MAX_GROWTH
                ))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// How many times as long a REPLACE may make a text.
fn growth(replace: &Function) -> f64 {
    let FunctionArguments::List(list) = &replace.args else { return 1.0 };
    let quoted = |index: usize| match list.args.get(index)? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Term::Value(value))) => value.value.clone().into_string(),
        _ => None,
    };
    // What is looked for may be a column, of a letter at least.
    let from = quoted(1).map_or(1, |from| from.len().max(1));
    quoted(2).map_or(f64::INFINITY, |to| (to.len() as f64 / from as f64).max(1.0))
}

/// How many UNIONs and the like put a query together.
fn unions(body: &SetExpr) -> usize {
    match body {
        SetExpr::SetOperation { left, right, .. } => 1 + unions(left) + unions(right),
        _ => 0,
    }
}

/// Refuses a plan that would give too many rows.
pub(super) fn check_rows(plan: &DslPlan) -> anyhow::Result<()> {
    most_rows(plan, &mut 0).map(|_| ())
}

/// How many rows a plan gives at most. Joins whose bound is too high are counted, those within them first.
fn most_rows(plan: &DslPlan, nodes: &mut usize) -> anyhow::Result<f64> {
    *nodes += 1;
    if *nodes > MAX_NODES {
        bail!(t!(
            "the query uses its tables in too many ways: each name in WITH counts as often as it is used"
        ));
    }
    let rows = match plan {
        DslPlan::DataFrameScan { df, .. } => return Ok(df.height() as f64),
        DslPlan::Filter { input, .. }
        | DslPlan::Cache { input, .. }
        | DslPlan::Select { input, .. }
        | DslPlan::GroupBy { input, .. }
        | DslPlan::HStack { input, .. }
        | DslPlan::MatchToSchema { input, .. }
        | DslPlan::Distinct { input, .. }
        | DslPlan::Sort { input, .. }
        | DslPlan::MapFunction { input, .. }
        | DslPlan::IR { dsl: input, .. } => return most_rows(input, nodes),
        DslPlan::Slice { input, len, .. } => return Ok(most_rows(input, nodes)?.min(f64::from(*len))),
        DslPlan::Join { input_left, input_right, options, .. } => {
            let (left, right) = (most_rows(input_left, nodes)?, most_rows(input_right, nodes)?);
            let most = match options.args.how {
                JoinType::Semi | JoinType::Anti => return Ok(left),
                _ => (left * right).max(left + right),
            };
            if most <= MAX_JOINED_ROWS {
                return Ok(most);
            }
            let (rows, one_to_one) = count_joined(plan).with_context(unanswerable)?;
            if rows > MAX_JOINED_ROWS.max(one_to_one) {
                bail!(t!(
                    "a join of this query would give about {count} rows: join ON columns that tell the rows apart",
                    count = format_count(rows as u64)
                ));
            }
            return Ok(rows);
        }
        DslPlan::Union { inputs, .. } | DslPlan::HConcat { inputs, .. } => {
            inputs.iter().map(|input| most_rows(input, nodes)).sum::<anyhow::Result<f64>>()?
        }
        DslPlan::PipeWithSchema { input, .. } => {
            input.iter().map(|input| most_rows(input, nodes)).sum::<anyhow::Result<f64>>()?
        }
        DslPlan::ExtContext { input, contexts } => {
            let rest = contexts.iter().map(|input| most_rows(input, nodes)).sum::<anyhow::Result<f64>>()?;
            most_rows(input, nodes)? + rest
        }
        DslPlan::Gather { input, idxs, .. } => most_rows(input, nodes)? + most_rows(idxs, nodes)?,
        // SQL makes little of the rest.
        _ => count(LazyFrame::from(plan.clone())).with_context(unanswerable)?,
    };
    if rows > MAX_ROWS {
        let count = format_count(rows as u64);
        bail!(t!("the tables of this query give about {count} rows together: select fewer of them", count));
    }
    Ok(rows)
}

/// About how many rows a join gives, and how many if each row found at most one.
fn count_joined(join: &DslPlan) -> PolarsResult<(f64, f64)> {
    let DslPlan::Join { input_left, input_right, left_on, right_on, predicates, options } = join else {
        return Ok((0.0, 0.0));
    };
    let frame = |plan: &DslPlan| LazyFrame::from(plan.clone());
    let (left, right) = (count(frame(input_left))?, count(frame(input_right))?);
    let joined = if !left_on.is_empty() {
        let groups = |plan: &DslPlan, on: &[Expr], name: &str| {
            let keys: Vec<_> =
                on.iter().enumerate().map(|(index, key)| key.clone().alias(index.to_string())).collect();
            frame(plan).group_by(keys).agg([len().cast(DataType::Float64).alias(name)])
        };
        let keys: Vec<_> = (0..left_on.len()).map(|index| col(index.to_string())).collect();
        let pairs = groups(input_left, left_on, "left")
            .join(groups(input_right, right_on, "right"), &keys, &keys, JoinType::Inner.into())
            .select([(col("left") * col("right")).sum()]);
        // Rows that find none stay in outer joins.
        number(pairs)? + if options.args.how == JoinType::Inner { 0.0 } else { left + right }
    } else if predicates.is_empty() {
        left * right
    } else {
        // Polars joins by what is equal, else by two inequalities, and goes by the others afterwards.
        let is_equal = |term: &&Expr| matches!(term, Expr::BinaryExpr { op: Operator::Eq, .. });
        let equal: Vec<_> = predicates.iter().filter(is_equal).cloned().collect();
        let first = if equal.is_empty() { predicates.iter().take(2).cloned().collect() } else { equal };
        let every = (left * right / TRIED_PAIRS).ceil().max(1.0);
        let tried = frame(input_left).select([all().as_expr().gather_every(every as usize, 0)]);
        let tried = DslPlan::Join {
            input_left: Arc::new(tried.logical_plan),
            input_right: input_right.clone(),
            left_on: Vec::new(),
            right_on: Vec::new(),
            predicates: first,
            options: options.clone(),
        };
        count(tried.into())? * every
    };
    Ok((joined, left + right))
}

fn count(frame: LazyFrame) -> PolarsResult<f64> {
    number(frame.select([len()]))
}

/// The one number that a frame has.
fn number(frame: LazyFrame) -> PolarsResult<f64> {
    let frame = frame.collect()?;
    Ok(frame.columns().first().and_then(|column| column.get(0).ok()?.extract()).unwrap_or_default())
}
