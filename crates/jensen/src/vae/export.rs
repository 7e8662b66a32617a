//! Networks of an auto-encoder in the ONNX format.

use jensen_neural::onnx;

use super::VaeModel;
use crate::Error;

/// A network of an auto-encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaeNetwork {
    /// The network from records to the means and log variances of their codes.
    Encoder,
    /// The network from codes to the means of records.
    Decoder,
}

impl VaeModel {
    /// Encodes a network as an ONNX model. Records have the columns and the units of the data: the model standardises and
    /// restores them in double precision, and its networks use single precision. If the weights have a posterior, the
    /// model uses their means.
    ///
    /// # Errors
    /// Fails with [`Error::Setting`] if the model was fitted to a table with columns of several kinds or with given
    /// columns, because ONNX has no tables of words.
    pub fn onnx(&self, network: VaeNetwork) -> Result<Vec<u8>, Error> {
        if self.layout.is_some() {
            return Err(Error::setting(
                "the networks of a mixed or conditional model read indicators of words, so they cannot be exported: use \
                 `jensen vae encode` and `jensen vae reconstruct`, or fit numeric columns without --given",
            ));
        }
        let columns = self.units.columns();
        let changed = !self.units.change_nothing();
        let (architecture, tensors) = (&self.architecture, self.tensors.as_slice());
        let text = |what: &str| {
            format!(
                "{what} of an auto-encoder with the decoder `{}`",
                architecture.observation.name()
            )
        };
        let encoded = match network {
            VaeNetwork::Encoder => {
                let map = changed.then(|| self.units.inward());
                onnx::encoder(architecture, tensors, (columns, map), &text("Encoder"))
            }
            VaeNetwork::Decoder => {
                let map = changed.then(|| self.units.outward());
                onnx::decoder(architecture, tensors, (columns, map), &text("Decoder"))
            }
        };
        encoded.map_err(|error| Error::Setting(format!("{error}: the network cannot be exported")))
    }
}
