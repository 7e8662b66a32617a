//! The two sets of images that the experiment uses: digits and faces.

use jensen::data::Rows;
use jensen::vae::{Architecture, Likelihood, Records, RowRecords, Selection, split};

use crate::context::Context;
use crate::failure::Failure;

/// A set of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// The digits of MNIST, with 60 000 training images and 10 000 test images. A grey level is the mean of a binary
    /// pixel.
    Digits,
    /// The Frey faces, which are 1965 grey images of one face.
    Faces,
}

/// The fraction of the faces that is held out. A seeded shuffle determines which faces are held out. The paper does not
/// state what fraction it holds out.
const FACES_APART: f64 = 0.1;

impl Set {
    /// Returns the name of the set, as used in the rows of results and in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Digits => "MNIST",
            Self::Faces => "Frey faces",
        }
    }

    /// Returns the width and the height of the images in pixels.
    pub fn size(self) -> (usize, usize) {
        match self {
            Self::Digits => (28, 28),
            Self::Faces => (20, 28),
        }
    }

    /// Returns the standard deviation of all initial weights and biases, or `None` for the default initialisation. The
    /// paper draws the initial weights and biases from N(0, 0.01). The digits use the initialisation of the paper. With
    /// this initialisation, training is slow at first but better after 6·10⁶ samples. The faces use the default,
    /// because the set contains only few faces. With the default, the ELBO of auto-encoders of faces gains a hundred
    /// nats over the first 10⁶ samples.
    pub fn initial_sd(self) -> Option<f64> {
        match self {
            Self::Digits => Some(0.01),
            Self::Faces => None,
        }
    }

    /// Returns the networks of the paper with `latent` latent values. The networks for digits have 500 hidden units,
    /// and the networks for faces have 200 hidden units.
    pub fn architecture(self, latent: usize) -> Architecture {
        let (width, height) = self.size();
        let (hidden, likelihood) = match self {
            Self::Digits => (500, Likelihood::Bernoulli),
            Self::Faces => (200, Likelihood::Gaussian { bounded: true }),
        };
        Architecture::paper(width * height, latent, hidden, likelihood)
    }

    /// Reads the training images and the test images of the set.
    ///
    /// # Errors
    /// Fails if the files of the images are missing or have the wrong size.
    pub fn open(self, context: &Context<'_>) -> Result<Images, Failure> {
        let read = |path: &str| -> Result<Rows, Failure> {
            let rows = Rows::open(&context.data(path)?)?;
            let (width, height) = self.size();
            if rows.width() == width * height {
                return Ok(rows);
            }
            Err(Failure::Data(format!(
                "`{}` has rows of {} numbers; images of {width} x {height} pixels are needed",
                rows.source(),
                rows.width()
            )))
        };
        let (train, test) = match self {
            Self::Digits => (
                read("mnist/train-images-idx3-ubyte.gz")?,
                Some(read("mnist/t10k-images-idx3-ubyte.gz")?),
            ),
            Self::Faces => (read("frey/frey_rawface.mat")?, None),
        };
        let (chosen, apart) = match &test {
            Some(test) => ((0..train.rows()).collect(), (0..test.rows()).collect()),
            None => split(train.rows(), FACES_APART, 0),
        };
        Ok(Images {
            train,
            test,
            chosen,
            apart,
        })
    }
}

/// The training images and the test images of a set.
pub struct Images {
    train: Rows,
    test: Option<Rows>,
    chosen: Vec<usize>,
    apart: Vec<usize>,
}

/// The training images and the test images of a set as records.
pub struct Views<'a> {
    train: RowRecords<'a>,
    test: RowRecords<'a>,
    images: &'a Images,
}

impl Images {
    /// Returns the training images and the test images as records.
    pub fn views(&self) -> Views<'_> {
        Views {
            train: RowRecords(&self.train),
            test: RowRecords(self.test.as_ref().unwrap_or(&self.train)),
            images: self,
        }
    }

    /// Returns the digest of the image files.
    pub fn digest(&self) -> String {
        let test = self.test.as_ref().map_or("", |rows| rows.digest());
        format!("{}{test}", self.train.digest())
    }
}

fn first<'a>(records: &'a dyn Records, indices: &[usize], count: usize) -> Selection<'a> {
    Selection {
        records,
        indices: indices.iter().copied().take(count).collect(),
    }
}

impl Views<'_> {
    /// Returns the first `count` training images.
    pub fn train(&self, count: usize) -> Selection<'_> {
        first(&self.train, &self.images.chosen, count)
    }

    /// Returns the first `count` test images.
    pub fn test(&self, count: usize) -> Selection<'_> {
        first(&self.test, &self.images.apart, count)
    }
}
