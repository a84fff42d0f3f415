//! The path nodes of each function.

use crate::calls::paths::Node;
use crate::units::FuncId;

#[derive(Debug)]
pub(crate) struct ByFunction {
    nodes: Vec<u32>,
    /// The function of each node, by index in `nodes`.
    functions: Vec<FuncId>,
}

impl ByFunction {
    pub(crate) fn new(nodes: &[Node]) -> Self {
        let mut order = (0..nodes.len() as u32).collect::<Vec<_>>();
        order.sort_by_key(|&node| nodes[node as usize].func);
        let functions = order.iter().map(|&node| nodes[node as usize].func).collect();
        Self { nodes: order, functions }
    }

    /// Returns all nodes, grouped by function.
    pub(crate) fn all(&self) -> &[u32] {
        &self.nodes
    }

    pub(crate) fn nodes_of(&self, func: FuncId) -> &[u32] {
        let first = self.functions.partition_point(|&other| other < func);
        let after = self.functions.partition_point(|&other| other <= func);
        &self.nodes[first..after]
    }
}
