//! The store that an address names, with its settings from the environment.
//!
//! Variables have the names that `object_store` gives them (`from_env` of its builders). They are
//! handed over one by one, because tests run several stores side by side.

use crate::{answers::Bounded, reason};
use object_store::{
    BackoffConfig, ClientConfigKey, ObjectStore, ObjectStoreScheme, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    azure::{AzureConfigKey, MicrosoftAzureBuilder},
    gcp::{GoogleCloudStorageBuilder, GoogleConfigKey},
    local::LocalFileSystem,
    path::Path,
};
use rustix::fs::stat;
use std::{path::PathBuf, sync::Arc, time::Duration};
use url::Url;

/// The time limits of connecting and of a request, unless the environment has others.
const LIMITS: [(ClientConfigKey, &str); 2] =
    [(ClientConfigKey::ConnectTimeout, "10 seconds"), (ClientConfigKey::Timeout, "120 seconds")];

type Variables = [(String, String)];

pub(crate) struct Destination {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Objects are below it.
    pub(crate) prefix: Path,
    folder: Option<Folder>,
}

/// The folder that must be there, for a store of files, and its device and number when it was opened.
/// Another one in its place may be that of a disk that is not mounted.
struct Folder {
    path: PathBuf,
    id: (u64, u64),
}

impl Destination {
    pub(crate) fn open(address: &str, variables: &Variables) -> Result<Self, String> {
        // It fails if there is one already, which is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = Url::parse(address).map_err(|error| format!("the URL is broken: {error}"))?;
        if url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err("the URL has more than a place: credentials go into the environment".into());
        }
        let (scheme, prefix) = ObjectStoreScheme::parse(&url)
            .map_err(|_| "the URL begins with none of s3, gs, az, abfs, abfss, file".to_owned())?;
        let failed = |error| reason::of_settings(&error, variables);
        let store: Arc<dyn ObjectStore> = match scheme {
            ObjectStoreScheme::Local => {
                let folder =
                    url.to_file_path().map_err(|()| "the URL names no folder".to_owned())?;
                let store = LocalFileSystem::new_with_prefix(&folder).map_err(failed)?;
                let store = Arc::new(store.with_fsync(true));
                let folder = Folder::find(&folder)
                    .map_err(|error| format!("there is no folder {}: {error}", folder.display()))?;
                return Ok(Self { store, prefix: Path::default(), folder: Some(folder) });
            }
            ObjectStoreScheme::AmazonS3 => Arc::new(s3(&url, variables).map_err(failed)?),
            ObjectStoreScheme::GoogleCloudStorage => {
                Arc::new(gcs(&url, variables).map_err(failed)?)
            }
            ObjectStoreScheme::MicrosoftAzure => Arc::new(azure(&url, variables).map_err(failed)?),
            _ => return Err("the URL begins with none of s3, gs, az, abfs, abfss, file".into()),
        };
        Ok(Self { store, prefix, folder: None })
    }

    #[cfg(test)]
    pub(crate) fn of(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, prefix: Path::default(), folder: None }
    }

    /// Returns true for a store of files in this folder: files would replace themselves.
    pub(crate) fn is_in(&self, folder: &std::path::Path) -> bool {
        let store = self.folder.as_ref().map(|store| &store.path);
        store
            .zip(folder.canonicalize().ok())
            .is_some_and(|(store, folder)| store.starts_with(folder))
    }

    /// Returns why nothing can be there now, without asking a store.
    pub(crate) fn missing(&self) -> Option<String> {
        let folder = self.folder.as_ref()?;
        let path = folder.path.display();
        match Folder::find(&folder.path) {
            Ok(now) if (&now.path, now.id) == (&folder.path, folder.id) => None,
            Ok(_) => Some(format!(
                "{path} is another folder than at the start: mount its disk, or start again"
            )),
            Err(_) => Some(format!("there is no folder {path}")),
        }
    }
}

impl Folder {
    fn find(path: &std::path::Path) -> std::io::Result<Self> {
        let path = path.canonicalize()?;
        let found = stat(&path)?;
        Ok(Self { path, id: (found.st_dev, found.st_ino) })
    }
}

/// Few tries of a request: a file is tried again as a whole.
fn retries() -> RetryConfig {
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(2), ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries: 2, retry_timeout: Duration::from_secs(60) }
}

/// Returns the settings of variables with this prefix, behind the usual ones.
fn settings<'a, K: std::str::FromStr + 'a>(
    prefix: &'a str,
    variables: &'a Variables,
    client: fn(ClientConfigKey) -> K,
) -> impl Iterator<Item = (K, String)> + 'a {
    let usual = LIMITS.into_iter().map(move |(key, value)| (client(key), value.to_owned()));
    let named = variables.iter().filter(move |(name, _)| name.starts_with(prefix));
    let given = named
        .filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value.clone())));
    usual.chain(given)
}

fn variable<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
    variables.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

fn s3(url: &Url, variables: &Variables) -> object_store::Result<impl ObjectStore + use<>> {
    let builder = AmazonS3Builder::new().with_retry(retries()).with_http_connector(Bounded);
    settings("AWS_", variables, AmazonS3ConfigKey::Client)
        .fold(builder, |builder, (key, value)| builder.with_config(key, value))
        .with_url(url.as_str())
        .build()
}

fn gcs(url: &Url, variables: &Variables) -> object_store::Result<impl ObjectStore + use<>> {
    let mut builder =
        GoogleCloudStorageBuilder::new().with_retry(retries()).with_http_connector(Bounded);
    if let Some(path) = variable(variables, "SERVICE_ACCOUNT") {
        builder = builder.with_service_account_path(path);
    }
    settings("GOOGLE_", variables, GoogleConfigKey::Client)
        .fold(builder, |builder, (key, value)| builder.with_config(key, value))
        .with_url(url.as_str())
        .build()
}

fn azure(url: &Url, variables: &Variables) -> object_store::Result<impl ObjectStore + use<>> {
    let mut builder =
        MicrosoftAzureBuilder::new().with_retry(retries()).with_http_connector(Bounded);
    if let Some(endpoint) = variable(variables, "IDENTITY_ENDPOINT") {
        builder = builder.with_msi_endpoint(endpoint);
    }
    settings("AZURE_", variables, AzureConfigKey::Client)
        .fold(builder, |builder, (key, value)| builder.with_config(key, value))
        .with_url(url.as_str())
        .build()
}
