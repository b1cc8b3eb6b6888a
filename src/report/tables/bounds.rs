//! What a query may ask for. One that would fill the stack or the memory is refused before it runs: polars would take
//! the whole program with it.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::ptr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use polars::lazy::dsl::DslPlan;
use polars::prelude::{
    DataFrame, DataType, Expr, JoinType, LazyFrame, Operator, PolarsResult, all, col, len,
};
use sqlparser::ast::{
    Expr as Term, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectName, Query, SetExpr,
    Visit as _, Visitor,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::{Parser, ParserError, ParserOptions};

use super::sql::unanswerable;
use crate::model::format_count;
use crate::text::t;

/// As long as an `IN` of some ten thousand numbers.
const MAX_BYTES: usize = 120_000;
/// Functions within each other, and about twice the parentheses. The parser's time can double with each.
const MAX_NESTED: usize = 22;
/// Terms that go on: `a OR b OR c` are three. Polars' memory grows with the square.
const MAX_CHAIN: usize = 500;
/// All terms, counted as often as polars writes them out.
const MAX_TERMS: usize = 30_000;
/// Tables, subqueries and UNIONs; polars' time grows with the square. A name of WITH counts as what it stands for.
const MAX_PARTS: usize = 400;
/// How many times as long all of a query's REPLACE may make a text.
const MAX_GROWTH: f64 = 100.0;
/// Joins give no more rows than this, unless each row of both sides finds at most one.
const MAX_JOINED_ROWS: f64 = 5e6;
/// Tables below each other give no more rows than this.
const MAX_ROWS: f64 = 1e8;
/// So many nodes of a plan are looked at.
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
        .with_recursion_limit(MAX_NESTED)
        .try_with_sql(sql)
        .and_then(|mut parser| parser.parse_statements());
    let statements = match statements {
        Err(ParserError::RecursionLimitExceeded) => bail!(too_many_terms()),
        other => other.context(t!("this is not SQL"))?,
    };
    match statements.visit(&mut Shape { parts: vec![0], terms: vec![0], ..Shape::default() }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(why) => bail!(why),
    }
}

/// What has been met so far.
#[derive(Default)]
struct Shape {
    /// The terms of the terms that are being visited, the innermost last.
    terms: Vec<usize>,
    /// The parts of the queries that are being visited, the innermost last.
    parts: Vec<usize>,
    /// The names of queries in WITH, by the query's address.
    names: HashMap<*const Query, String>,
    /// How many parts such a name stands for.
    named: HashMap<String, usize>,
    growth: f64,
}

impl Visitor for Shape {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        self.names.extend(with.map(|named| (ptr::from_ref(&*named.query), named.alias.name.value.clone())));
        self.parts.push(0);
        self.add_parts(1 + unions(&query.body))
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        let parts = self.parts.pop().unwrap_or_default();
        if let Some(name) = self.names.get(&ptr::from_ref(query)) {
            self.named.insert(name.clone(), parts);
        }
        self.add_parts(parts)
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<String> {
        let parts = last_word(name).and_then(|name| self.named.get(name)).copied();
        self.add_parts(parts.unwrap_or(1))
    }

    fn pre_visit_expr(&mut self, term: &Term) -> ControlFlow<String> {
        self.terms.push(1);
        match term {
            _ if self.terms.len() > MAX_CHAIN + MAX_NESTED => ControlFlow::Break(too_many_terms()),
            Term::Function(function) => self.check_call(function),
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, term: &Term) -> ControlFlow<String> {
        let terms = self.terms.pop().unwrap_or_default().saturating_mul(repeats(term));
        match self.terms.last_mut() {
            Some(sum) if *sum + terms <= MAX_TERMS => *sum += terms,
            _ => return ControlFlow::Break(too_many_terms()),
        }
        ControlFlow::Continue(())
    }
}

impl Shape {
    fn add_parts(&mut self, count: usize) -> ControlFlow<String> {
        match self.parts.last_mut() {
            Some(sum) if *sum + count <= MAX_PARTS => *sum += count,
            _ => {
                let count = MAX_PARTS;
                return ControlFlow::Break(t!(
                    "the query has more than {count} tables, subqueries and UNIONs",
                    count
                ));
            }
        }
        ControlFlow::Continue(())
    }

    fn check_call(&mut self, function: &Function) -> ControlFlow<String> {
        let name = last_word(&function.name).unwrap_or_default().to_uppercase();
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

fn too_many_terms() -> String {
    let (terms, chain) = (format_count(MAX_TERMS as u64), MAX_CHAIN);
    let nested = MAX_NESTED;
    t!(
        "the query has too many terms: it may have {terms}, {chain} in one chain, {nested} within each other",
        terms,
        chain,
        nested
    )
}

/// How often polars writes out what a term is made of.
fn repeats(term: &Term) -> usize {
    match term {
        Term::Between { .. } => 2,
        Term::Extract { .. } | Term::Substring { .. } => 4,
        Term::Case { operand: Some(operand), conditions, .. }
            if !matches!(**operand, Term::Identifier(_) | Term::CompoundIdentifier(_)) =>
        {
            conditions.len()
        }
        Term::Function(function) => {
            let name = last_word(&function.name).unwrap_or_default().to_uppercase();
            let repeating = ["NULLIF", "LEFT", "RIGHT", "SUBSTR", "SPLIT_PART", "DATE_PART", "ARRAY_GET"];
            if repeating.contains(&name.as_str()) { 4 } else { 1 }
        }
        _ => 1,
    }
}

/// The name without those before its dots.
fn last_word(name: &ObjectName) -> Option<&str> {
    Some(&name.0.last()?.as_ident()?.value)
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

/// Refuses a plan that would give too many rows. Says whether polars must take whole rows, see [`collect`].
pub(super) fn check_rows(plan: &DslPlan) -> anyhow::Result<bool> {
    let mut seen = Seen::default();
    most_rows(plan, &mut seen)?;
    Ok(seen.needs_whole_rows)
}

/// What has been seen of a plan.
#[derive(Default)]
struct Seen {
    nodes: usize,
    needs_whole_rows: bool,
}

/// How many rows a plan gives at most. Joins whose bound is too high are counted, those within them first.
fn most_rows(plan: &DslPlan, seen: &mut Seen) -> anyhow::Result<f64> {
    seen.nodes += 1;
    if seen.nodes > MAX_NODES {
        bail!(t!("polars gave up on this query; write it another way"));
    }
    seen.needs_whole_rows |= match plan {
        DslPlan::Join { options, .. } => options.args.how == JoinType::Cross,
        DslPlan::Union { .. } => true,
        _ => false,
    };
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
        | DslPlan::IR { dsl: input, .. } => return most_rows(input, seen),
        DslPlan::Slice { input, len, .. } => return Ok(most_rows(input, seen)?.min(f64::from(*len))),
        DslPlan::Join { input_left, input_right, options, .. } => {
            let (left, right) = (most_rows(input_left, seen)?, most_rows(input_right, seen)?);
            let most = match options.args.how {
                JoinType::Semi | JoinType::Anti => return Ok(left),
                _ => (left * right).max(left + right),
            };
            if most <= MAX_JOINED_ROWS {
                return Ok(most);
            }
            let (rows, one_to_one) = count_joined(plan, seen.needs_whole_rows).with_context(unanswerable)?;
            if rows > MAX_JOINED_ROWS.max(one_to_one) {
                bail!(t!(
                    "a join of this query would give about {count} rows: join ON columns that tell the rows apart",
                    count = format_count(rows as u64)
                ));
            }
            return Ok(rows);
        }
        DslPlan::Union { inputs, .. } | DslPlan::HConcat { inputs, .. } => {
            inputs.iter().map(|input| most_rows(input, seen)).sum::<anyhow::Result<f64>>()?
        }
        DslPlan::PipeWithSchema { input, .. } => {
            input.iter().map(|input| most_rows(input, seen)).sum::<anyhow::Result<f64>>()?
        }
        DslPlan::ExtContext { input, contexts } => {
            let rest = contexts.iter().map(|input| most_rows(input, seen)).sum::<anyhow::Result<f64>>()?;
            most_rows(input, seen)? + rest
        }
        DslPlan::Gather { input, idxs, .. } => most_rows(input, seen)? + most_rows(idxs, seen)?,
        // SQL makes little of the rest.
        _ => count(LazyFrame::from(plan.clone()), seen.needs_whole_rows).with_context(unanswerable)?,
    };
    if rows > MAX_ROWS {
        let count = format_count(rows as u64);
        bail!(t!("the tables of this query give about {count} rows together: select fewer of them", count));
    }
    Ok(rows)
}

/// About how many rows a join gives, and how many if each row found at most one.
fn count_joined(join: &DslPlan, whole: bool) -> PolarsResult<(f64, f64)> {
    let DslPlan::Join { input_left, input_right, left_on, right_on, predicates, options } = join else {
        return Ok((0.0, 0.0));
    };
    let frame = |plan: &DslPlan| LazyFrame::from(plan.clone());
    let (left, right) = (count(frame(input_left), whole)?, count(frame(input_right), whole)?);
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
        number(pairs, whole)? + if options.args.how == JoinType::Inner { 0.0 } else { left + right }
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
        count(tried.into(), whole)? * every
    };
    Ok((joined, left + right))
}

fn count(frame: LazyFrame, whole: bool) -> PolarsResult<f64> {
    number(frame.select([len()]), whole)
}

/// The one number that a frame has.
fn number(frame: LazyFrame, whole: bool) -> PolarsResult<f64> {
    let frame = collect(frame, whole)?;
    Ok(frame.columns().first().and_then(|column| column.get(0).ok()?.extract()).unwrap_or_default())
}

/// The rows of a plan. Of a UNION polars counts them in a type that this program goes without, and of a CROSS JOIN it
/// forgets that a sum is one row, unless it takes all columns along.
pub(super) fn collect(frame: LazyFrame, whole: bool) -> PolarsResult<DataFrame> {
    frame.with_projection_pushdown(!whole).collect()
}
