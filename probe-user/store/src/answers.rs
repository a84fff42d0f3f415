//! Bounds what a store answers. `object_store` reads answers as a whole, whatever their size is.

use async_trait::async_trait;
use http_body_util::{BodyExt as _, Limited};
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
        HttpResponseBody, HttpService, ReqwestConnector,
    },
};

/// The limit of an answer, in bytes. Nothing is fetched but answers about uploads, and credentials.
const MOST: usize = 1 << 20;

/// A connector whose answers are bounded.
#[derive(Debug, Default)]
pub(crate) struct Bounded;

#[derive(Debug)]
struct BoundedClient(HttpClient);

impl HttpConnector for Bounded {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(BoundedClient(client)))
    }
}

#[async_trait]
impl HttpService for BoundedClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = self.0.execute(request).await?.into_parts();
        let body = Limited::new(body, MOST).map_err(|error| match error.downcast::<HttpError>() {
            Ok(error) => *error,
            Err(error) => HttpError::new_boxed(HttpErrorKind::Decode, error),
        });
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
    }
}
