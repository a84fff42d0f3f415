//! A server that speaks as much of S3 as uploads need, and fails as a test wants it.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// A fault that meets a request.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    None,
    Status(u16, String),
    /// The connection is cut when half of the request is there.
    Cut,
    /// No answer comes, and the connection stays.
    Silent,
    /// An error whose text has no end.
    Endless,
    /// The answer is as usual, and nothing was kept.
    Forgotten,
    /// The object is said to have one byte more.
    OtherSize,
    OtherTag,
}

/// Decides by the method, the target and the number of the request.
type Script = dyn Fn(&str, &str, usize) -> Fault + Send + Sync;

#[derive(Default)]
pub(super) struct Kept {
    pub(super) objects: BTreeMap<String, Vec<u8>>,
    /// The parts of unfinished uploads, by number of the upload.
    pub(super) uploads: BTreeMap<usize, BTreeMap<usize, Vec<u8>>>,
    /// Methods and targets of all requests.
    pub(super) requests: Vec<(String, String)>,
    /// Bytes of an answer without an end that the client took.
    pub(super) endless: usize,
}

pub(super) struct Server {
    pub(super) address: String,
    pub(super) kept: Arc<Mutex<Kept>>,
}

struct Request {
    method: String,
    target: String,
    body: Vec<u8>,
}

impl Server {
    /// Starts one, which answers until the test ends.
    pub(super) fn start(
        script: impl Fn(&str, &str, usize) -> Fault + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let kept = Arc::new(Mutex::new(Kept::default()));
        let (script, keeper): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&kept));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, kept) = (Arc::clone(&script), Arc::clone(&keeper));
                thread::spawn(move || serve(stream, &*script, &kept));
            }
        });
        Self { address, kept }
    }

    /// Returns the settings of a client.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let all = [
            ("AWS_ENDPOINT", &*self.address),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
            ("AWS_SECRET_ACCESS_KEY", "verysecret"),
            ("AWS_TIMEOUT", "1 second"),
        ];
        all.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
    }

    /// Returns the settings of a client that takes it for Google's: it spells the names of objects in
    /// another way, and asks for the same otherwise.
    pub(super) fn variables_of_google(&self) -> Vec<(String, String)> {
        // A key that has no signature, for emulators.
        let key = format!(
            r#"{{"gcs_base_url":"{}","disable_oauth":true,"client_email":"","private_key":"","private_key_id":""}}"#,
            self.address
        );
        let all = [
            ("GOOGLE_SERVICE_ACCOUNT_KEY", &*key),
            ("GOOGLE_ALLOW_HTTP", "true"),
            ("GOOGLE_TIMEOUT", "10 seconds"),
        ];
        all.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
    }

    /// Returns the objects below `a/prefix` by the paths of their files.
    pub(super) fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        let kept = self.kept.lock().unwrap();
        let path = |key: &str| decoded(key).strip_prefix("a/prefix/").unwrap().to_owned();
        kept.objects.iter().map(|(key, bytes)| (path(key), bytes.clone())).collect()
    }

    /// Returns the number of requests with this method.
    pub(super) fn sent(&self, method: &str) -> usize {
        let kept = self.kept.lock().unwrap();
        kept.requests.iter().filter(|(sent, _)| sent == method).count()
    }
}

/// Undoes the escapes of a URL.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let byte = u8::from_str_radix(&part[..2], 16).unwrap();
        text + &char::from(byte).to_string() + &part[2..]
    })
}

fn serve(stream: TcpStream, script: &Script, kept: &Mutex<Kept>) {
    let mut from = BufReader::new(stream.try_clone().unwrap());
    let mut to = stream;
    while let Some((method, target, length)) = head(&mut from) {
        let number = {
            let mut kept = kept.lock().unwrap();
            kept.requests.push((method.clone(), target.clone()));
            kept.requests.len() - 1
        };
        let fault = script(&method, &target, number);
        let wanted = if matches!(fault, Fault::Cut) { length / 2 } else { length };
        let mut body = vec![0; wanted];
        if from.read_exact(&mut body).is_err() || matches!(fault, Fault::Cut) {
            return;
        }
        let request = Request { method, target, body };
        let answer = match &fault {
            Fault::Silent => {
                // It ends when the client gives up.
                let _ = from.read(&mut [0]);
                return;
            }
            Fault::Endless => return endless(&mut to, kept),
            Fault::Status(status, text) => answer(*status, "", text),
            _ => request.answer(&fault, &mut kept.lock().unwrap()),
        };
        if to.write_all(&answer).is_err() {
            return;
        }
    }
}

/// Returns the method, the target and the length of the body.
fn head(from: &mut BufReader<TcpStream>) -> Option<(String, String, usize)> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let mut words = lines.first()?.split(' ').map(str::to_owned);
    let length = lines.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    Some((words.next()?, words.next()?, length.unwrap_or(0)))
}

fn answer(status: u16, headers: &str, body: &str) -> Vec<u8> {
    let length = match headers.contains("content-length") {
        true => String::new(),
        false => format!("content-length: {}\r\n", body.len()),
    };
    format!("HTTP/1.1 {status} X\r\n{headers}{length}\r\n{body}").into_bytes()
}

fn endless(to: &mut TcpStream, kept: &Mutex<Kept>) {
    let text = [b'x'; 64 << 10];
    if to.write_all(b"HTTP/1.1 400 X\r\n\r\n").is_err() {
        return;
    }
    while to.write_all(&text).is_ok() {
        kept.lock().unwrap().endless += text.len();
    }
}

fn tag(bytes: &[u8]) -> String {
    let sum =
        bytes.iter().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add((*byte).into()));
    format!("\"{sum:032x}\"")
}

impl Request {
    fn answer(&self, fault: &Fault, kept: &mut Kept) -> Vec<u8> {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let key = path.strip_prefix("/bucket/").unwrap_or(path).to_owned();
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse::<usize>().ok())
        };
        let etag = |bytes: &[u8]| match fault {
            Fault::OtherTag => "etag: \"other\"\r\n".to_owned(),
            _ => format!("etag: {}\r\n", tag(bytes)),
        };
        match (&*self.method, value("uploadId")) {
            ("HEAD", _) => match kept.objects.get(&key) {
                Some(bytes) => {
                    let more = usize::from(matches!(fault, Fault::OtherSize));
                    let date = "last-modified: Mon, 30 Nov 2026 10:00:00 GMT\r\n";
                    let length = format!("content-length: {}\r\n", bytes.len() + more);
                    answer(200, &format!("{date}{length}{}", etag(bytes)), "")
                }
                None => answer(404, "", ""),
            },
            ("POST", None) => {
                let number = kept.requests.len();
                kept.uploads.insert(number, BTreeMap::new());
                let name = "InitiateMultipartUploadResult";
                answer(200, "", &format!("<{name}><UploadId>{number}</UploadId></{name}>"))
            }
            ("PUT", Some(upload)) => {
                let Some(parts) = kept.uploads.get_mut(&upload) else { return answer(404, "", "") };
                parts.insert(value("partNumber").unwrap(), self.body.clone());
                answer(200, &etag(&self.body), "")
            }
            ("POST", Some(upload)) => {
                let Some(parts) = kept.uploads.remove(&upload) else { return answer(404, "", "") };
                let whole: Vec<u8> = parts.into_values().flatten().collect();
                let name = "CompleteMultipartUploadResult";
                let text = format!("<{name}><ETag>{}</ETag></{name}>", tag(&whole));
                kept.objects.insert(key, whole);
                answer(200, "", &text)
            }
            ("DELETE", Some(upload)) => {
                kept.uploads.remove(&upload);
                answer(204, "", "")
            }
            ("PUT", None) => {
                let headers = etag(&self.body);
                if !matches!(fault, Fault::Forgotten) {
                    kept.objects.insert(key, self.body.clone());
                }
                answer(200, &headers, "")
            }
            _ => answer(405, "", ""),
        }
    }
}
