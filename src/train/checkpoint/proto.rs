//! TensorFlow's object graph (`trackable_object_graph.proto`): the objects of a checkpoint, and the keys of their values.

use prost::Message;

use crate::error::{Error, Result, message};

/// All objects; the first is the checkpoint itself.
#[derive(Clone, PartialEq, Message)]
pub struct TrackableObjectGraph {
    #[prost(message, repeated, tag = "1")]
    pub nodes: Vec<TrackableObject>,
}

/// An object: its parts, and its own values.
#[derive(Clone, PartialEq, Message)]
pub struct TrackableObject {
    #[prost(message, repeated, tag = "1")]
    pub children: Vec<ObjectReference>,
    #[prost(message, repeated, tag = "2")]
    pub attributes: Vec<SerializedTensor>,
    #[prost(message, repeated, tag = "3")]
    pub slot_variables: Vec<SlotVariableReference>,
    #[prost(message, optional, tag = "5")]
    pub has_checkpoint_values: Option<BoolValue>,
}

/// A part of an object, with its name there.
#[derive(Clone, PartialEq, Message)]
pub struct ObjectReference {
    #[prost(int32, tag = "1")]
    pub node_id: i32,
    #[prost(string, tag = "2")]
    pub local_name: String,
}

/// A value of an object.
#[derive(Clone, PartialEq, Message)]
pub struct SerializedTensor {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub full_name: String,
    /// The name of the tensor in the bundle.
    #[prost(string, tag = "3")]
    pub checkpoint_key: String,
}

/// A variable that an optimizer of Keras 2 stores for another variable.
#[derive(Clone, PartialEq, Message)]
pub struct SlotVariableReference {
    #[prost(int32, tag = "1")]
    pub original_variable_node_id: i32,
    #[prost(string, tag = "2")]
    pub slot_name: String,
    #[prost(int32, tag = "3")]
    pub slot_variable_node_id: i32,
}

/// `google.protobuf.BoolValue`.
#[derive(Clone, PartialEq, Message)]
pub struct BoolValue {
    #[prost(bool, tag = "1")]
    pub value: bool,
}

/// The tensor that contains the graph.
pub(super) const GRAPH: &str = "_CHECKPOINTABLE_OBJECT_GRAPH";
/// The name of a variable's value.
pub(super) const VALUE: &str = "VARIABLE_VALUE";

impl TrackableObjectGraph {
    /// The graph in these bytes, whose references have been checked.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let graph = TrackableObjectGraph::decode(bytes).map_err(|error| {
            Error::Data(message!(
                "{GRAPH}: it is no object graph ({error}). The checkpoint is damaged, or a newer program wrote it; take \
                 another one."
            ))
        })?;
        let count = graph.nodes.len();
        for (at, node) in graph.nodes.iter().enumerate() {
            let slots = node.slot_variables.iter();
            let slots = slots.flat_map(|s| [s.original_variable_node_id, s.slot_variable_node_id]);
            let mut all = node.children.iter().map(|child| child.node_id).chain(slots);
            if let Some(id) = all.find(|id| usize::try_from(*id).map_or(true, |id| id >= count)) {
                return Err(Error::Data(message!(
                    "{GRAPH}: object {at} refers to object {id}, and there are {count}. The checkpoint is damaged; take \
                     another one."
                )));
            }
        }
        if count == 0 {
            return Err(Error::Data(message!(
                "{GRAPH}: it has no objects. The checkpoint is damaged; take another one."
            )));
        }
        Ok(graph)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trackable::{Everything, Scope};
    use crate::train::checkpoint::graph::Graph;
    use crate::train::checkpoint::matching::matching;

    /// Whatever the bytes are, matching ends, with or without an error.
    #[test]
    fn any_bytes_are_a_graph_or_an_error() {
        use crate::keras::layers::Dense;
        use crate::keras::{Sequential, optimizers::Adam};
        let parts = vec![
            Sequential::new().add(Dense::new(2)).add(Dense::new(3)),
            Sequential::new().add(Dense::new(2)),
        ];
        let root = (parts, Adam::new(0.1));
        let everything = Everything::forms(&root, Scope::Checkpoint);
        let graph = Graph::new(&root, &everything);
        let bytes = graph.to_proto().encode_to_vec();
        let mut random = fastrand::Rng::with_seed(7);
        let (mut read, mut found) = (0, 0);
        for _ in 0..100_000 {
            let mut broken = bytes.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..broken.len());
                match random.u8(..3) {
                    0 => broken[at] = random.u8(..),
                    1 => broken[at] ^= 1 << random.u8(..8),
                    _ => broken.truncate(at.max(1)),
                }
            }
            if let Ok(parsed) = TrackableObjectGraph::parse(&broken) {
                read += 1;
                if let Ok(matching) = matching(&graph, &everything, &[], &parsed, &|_| None) {
                    found += matching.values.len();
                }
            }
        }
        assert!(read > 1_000 && found > 1_000, "{read} were read, {found} values found");
    }
}
