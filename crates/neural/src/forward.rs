//! Programs that evaluate networks for many lanes without gradients, together with their scratch memory.

use jensen_graph::{Graph, NodeId, SingleProgram, SingleWorkspace, Unsupported};
use jensen_math::simd::Simd;

use crate::evaluate::LANES;
use crate::layers::TensorSpec;
use crate::model::LocalModel;

pub(crate) struct Forward {
    program: SingleProgram,
    workspace: SingleWorkspace,
}

impl Forward {
    /// Builds a graph whose inputs are shared tensors, followed by per-lane values of the given widths.
    pub(crate) fn new(
        specs: &[TensorSpec],
        widths: &[usize],
        simd: Simd,
        build: impl FnOnce(&mut Graph, &[NodeId], &[NodeId]) -> Vec<NodeId>,
    ) -> Result<Self, Unsupported> {
        let mut graph = Graph::new();
        let tensors: Vec<NodeId> = specs
            .iter()
            .map(|spec| graph.shared_input(spec.len()))
            .collect();
        let values: Vec<NodeId> = widths.iter().map(|&width| graph.input(width)).collect();
        let outputs = build(&mut graph, &tensors, &values);
        graph.set_outputs(outputs);
        let program = SingleProgram::new(&graph, simd)?;
        let workspace = program.workspace(LANES);
        Ok(Self { program, workspace })
    }

    /// Builds log p(x, z) and its gradient with respect to z. Each lane has its own x and z.
    pub(crate) fn posterior(model: &dyn LocalModel, simd: Simd) -> Result<Self, Unsupported> {
        let widths = [model.width(), model.latent()];
        Self::new(&model.specs(), &widths, simd, |g, tensors, values| {
            let (x, z) = (values[0], values[1]);
            let likelihood = model.log_likelihood(g, tensors, x, z);
            let prior = model.log_prior(g, tensors, z);
            let joint = g.add(likelihood, prior);
            let slope = g.gradient(joint, &[z])[0];
            vec![joint, slope]
        })
    }

    pub(crate) fn run<'a, const N: usize>(
        &'a mut self,
        tensors: &[&[f32]],
        values: &[&[f32]],
        lanes: usize,
    ) -> [&'a [f32]; N] {
        let mut inputs = tensors.to_vec();
        inputs.extend_from_slice(values);
        self.program.run_lanes(&mut self.workspace, &inputs, lanes);
        std::array::from_fn(|which| self.program.output(&self.workspace, which, lanes))
    }

    pub(crate) fn program(&self) -> &SingleProgram {
        &self.program
    }
}
