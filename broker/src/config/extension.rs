//! Duty: how the extended header is offered, and where the broker answers as strictly as Youzan's fork.

use clap::Args;
use serde::Serialize;

use super::fault::Faults;

/// Raw flags of the extension.
#[derive(Args, Clone, Debug, Serialize)]
#[command(next_help_heading = "Extended header")]
pub struct ExtensionOptions {
    /// New topics carry the extended header
    #[arg(long, default_value_t = true)]
    pub default_extend: bool,
    /// A plain subscriber of an extended topic gets plain messages; false refuses it with E_SUB_EXTEND_NEED
    #[arg(long, default_value_t = true)]
    pub allow_sub_ext_compatible: bool,
    /// Take an extended publish on a plain topic, without its header, if that holds nothing but keys that
    /// start with ## and load-test keys
    #[arg(long)]
    pub allow_ext_compatible: bool,
    /// Version byte that consumers see before a JSON header, 1 to 255
    #[arg(long, default_value = "4")]
    pub ext_json_version: i64,
    /// Header key that marks load-test traffic; may be given several times
    #[arg(long, default_value = "zan_test")]
    pub load_test_key: Vec<String>,
    /// Refuse a partition that is not this broker's
    #[arg(long)]
    pub strict_partition: bool,
    /// Refuse an extended subscriber on a topic that is not extended
    #[arg(long)]
    pub forbid_sub_ext_on_plain: bool,
}

/// Checked settings of the extension. What can change at run time is in [`super::Changeable`].
#[derive(Clone, Debug)]
pub struct ExtensionConfig {
    /// New topics are extended.
    pub default_extend: bool,
    /// Version byte of JSON headers.
    pub ext_json_version: u8,
    /// Header keys that mark load-test traffic.
    pub load_test_keys: Vec<String>,
    /// Only the broker's own partition is taken.
    pub strict_partition: bool,
    /// Extended subscribers are refused on plain topics.
    pub forbid_sub_ext_on_plain: bool,
}

impl ExtensionOptions {
    pub(super) fn resolve(&self, faults: &mut Faults) -> ExtensionConfig {
        ExtensionConfig {
            default_extend: self.default_extend,
            ext_json_version: faults.within("ext-json-version", self.ext_json_version, 1, 255) as u8,
            load_test_keys: self.load_test_key.clone(),
            strict_partition: self.strict_partition,
            forbid_sub_ext_on_plain: self.forbid_sub_ext_on_plain,
        }
    }
}
