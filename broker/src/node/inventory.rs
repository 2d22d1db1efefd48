//! Duty: what lookupds are told of this node. Must not know lookupds.

use crate::registration::{Hosted, Inventory};
use crate::topic::directory::Directory;

impl Inventory for Directory {
    fn topics(&self) -> Vec<Hosted> {
        let hosted = |topic: std::sync::Arc<crate::topic::Topic>| Hosted {
            topic: topic.name().to_string(),
            incarnation: topic.incarnation(),
            channels: topic
                .channels()
                .iter()
                .map(|channel| (channel.name().to_string(), channel.incarnation()))
                .collect(),
        };
        self.live_topics().into_iter().map(hosted).collect()
    }
}
