//! Latent Gaussian models by dual variational inference.
