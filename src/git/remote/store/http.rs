//! Requests to a store: signed, within a time limit, made again while the store has too much to do.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, FixedOffset};
use itertools::Itertools as _;
use rusty_s3::actions::{DeleteObject, GetObject, PutObject};
use rusty_s3::{Credentials, S3Action};
use ureq::Agent;
use ureq::http::{Request as HttpRequest, Response as HttpResponse, header};

use super::access::Access;
use crate::git::base::Error;
use crate::git::remote::answer::{Answer, Missed};
use crate::git::remote::call::Limits;
use crate::policy::secrets::redact;
use crate::policy::text::escape;

/// A request in which nothing moves for so long is over.
const STALLED: Duration = Duration::from_secs(60);
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(15);
/// How long a signed request is good for: its beginning is what counts.
const SIGNED_FOR: Duration = Duration::from_secs(900);
/// How often one is made before the store is said to be away.
const TRIES: u32 = 4;
/// The wait before the second try, doubled each time.
const PAUSE: Duration = Duration::from_millis(200);
/// A longer wait that the store wants is the caller's.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How many requests are under way at a time.
const AT_ONCE: usize = 16;
/// More of an answer is not kept in memory, in bytes.
const MOST: u64 = 64 << 20;
/// How often it is seen whether a user wants the request to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// A moment by the store's clock.
pub(super) type Moment = DateTime<FixedOffset>;

/// What must hold for a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Nothing has that key.
    Absent,
    /// What has the key is of this tag, which the store gave.
    Is(String),
}

/// What is done to a key.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Read it.
    Get,
    /// Read it into a file, which is made.
    GetTo(PathBuf),
    /// Read the keys that begin so, from a mark on.
    List(Option<String>),
    /// Write it.
    Put(Arc<[u8]>, Option<Condition>),
    /// Write a file's content.
    PutFile(PathBuf),
    /// Remove it.
    Delete,
}

/// A request for a key.
pub(super) type Request = (String, Act);

/// What a store answers where it did what was wanted, or says why not: nothing of that key, or another state than expected.
#[derive(Clone, Debug)]
pub(super) struct Response {
    pub status: u16,
    pub tag: Option<String>,
    /// When it was answered, and written, by the store's own clock.
    pub now: Option<Moment>,
    pub written: Option<Moment>,
    pub body: Vec<u8>,
}

impl Response {
    /// How long before the answer a moment of the store's was.
    pub(super) fn age(&self, then: Option<Moment>) -> Option<Duration> {
        (self.now? - then?).to_std().ok()
    }

    /// Whether it is done.
    pub(super) fn is_done(&self) -> bool {
        self.status < 300
    }
}

/// Who makes requests.
#[derive(Clone, Debug)]
pub(super) struct Client {
    access: Arc<Access>,
    agent: Agent,
}

impl Client {
    pub(super) fn new(access: Access) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(STALLED))
            .timeout_per_write(Some(STALLED))
            .build()
            .new_agent();
        Self {
            access: Arc::new(access),
            agent,
        }
    }

    /// Makes a request.
    pub(super) fn run(&self, request: Request, limits: &Limits<'_>) -> Answer<Response> {
        self.run_all(vec![request], limits)?.remove(0)
    }

    /// Makes requests, some at a time; their answers, in their order.
    pub(super) fn run_all(
        &self,
        requests: Vec<Request>,
        limits: &Limits<'_>,
    ) -> Answer<Vec<Answer<Response>>> {
        let Some(credentials) = self.access.credentials() else {
            let said = "no keys were found: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE and \
                        ~/.aws/credentials, name them";
            return Err(Missed::Refused(said.to_owned()));
        };
        self.run_as(Some(credentials), requests, limits)
    }

    /// Makes a request as a stranger would.
    pub(super) fn run_unsigned(&self, request: Request, limits: &Limits<'_>) -> Answer<Response> {
        self.run_as(None, vec![request], limits)?.remove(0)
    }

    fn run_as(
        &self,
        credentials: Option<Credentials>,
        requests: Vec<Request>,
        limits: &Limits<'_>,
    ) -> Answer<Vec<Answer<Response>>> {
        let count = requests.len();
        let until = Instant::now() + limits.left();
        let (requests, next) = (Arc::new(requests), Arc::new(AtomicUsize::new(0)));
        let (is_over, credentials) = (Arc::new(AtomicBool::new(false)), Arc::new(credentials));
        let (sender, answers) = channel();
        for _ in 0..count.min(AT_ONCE) {
            let (client, sender, requests) = (self.clone(), sender.clone(), Arc::clone(&requests));
            let (next, is_over, credentials) = (
                Arc::clone(&next),
                Arc::clone(&is_over),
                Arc::clone(&credentials),
            );
            // Nobody can end a request that is under way: its thread is left to its own end.
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(request) = requests.get(number) else {
                        break;
                    };
                    let answer = client.insist(credentials.as_ref().as_ref(), request, || {
                        is_over.load(Ordering::Relaxed) || Instant::now() > until
                    });
                    if sender.send((number, answer)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let late = || Err(Missed::Cut("the store did not answer in time".to_owned()));
        let mut all: Vec<_> = (0..count).map(|_| late()).collect();
        let mut left = count;
        while left > 0 && Instant::now() < until {
            match answers.recv_timeout(GLANCE) {
                Ok((number, answer)) => {
                    all[number] = answer;
                    left -= 1;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if limits.is_stopped() {
                is_over.store(true, Ordering::Relaxed);
                return Err(Error::Stopped.into());
            }
        }
        is_over.store(true, Ordering::Relaxed);
        // Only a write on a condition changes what anybody reads.
        let of_act = |(answer, request): (Answer<Response>, &Request)| match &request.1 {
            Act::Put(_, Some(_)) => answer,
            _ => answer.map_err(Missed::of_reading),
        };
        Ok(all.into_iter().zip(requests.iter()).map(of_act).collect())
    }

    /// Makes a request until it is answered, or the store has said often enough that it cannot.
    fn insist(
        &self,
        credentials: Option<&Credentials>,
        request: &Request,
        is_over: impl Fn() -> bool,
    ) -> Answer<Response> {
        let mut tried = 0;
        loop {
            tried += 1;
            let answer = self.once(credentials, request);
            let after = match &answer {
                Err(Missed::Away { after, .. }) => *after,
                Err(Missed::Cut(_)) => None,
                _ => return answer,
            };
            let grows = PAUSE.mul_f64(0.5 + fastrand::f64()) * (1 << tried);
            let pause = after.unwrap_or(grows);
            if tried == TRIES || pause > LONGEST_PAUSE || is_over() {
                return answer;
            }
            thread::sleep(pause);
        }
    }

    /// Makes a request once.
    fn once(&self, credentials: Option<&Credentials>, request: &Request) -> Answer<Response> {
        let url = self.signed(credentials, request);
        let to = |method: &str| HttpRequest::builder().method(method).uri(&url);
        let unsent = |error: &dyn std::fmt::Display| Error::Program {
            name: "a request to the store".to_owned(),
            said: error.to_string(),
        };
        let made = match &request.1 {
            Act::Get | Act::GetTo(_) | Act::List(_) => self
                .agent
                .run(to("GET").body(()).map_err(|error| unsent(&error))?),
            Act::Delete => self
                .agent
                .run(to("DELETE").body(()).map_err(|error| unsent(&error))?),
            Act::Put(bytes, condition) => {
                let request = match condition {
                    Some(Condition::Absent) => to("PUT").header(header::IF_NONE_MATCH, "*"),
                    Some(Condition::Is(tag)) => to("PUT").header(header::IF_MATCH, tag),
                    None => to("PUT"),
                };
                self.agent.run(
                    request
                        .body(bytes.as_ref())
                        .map_err(|error| unsent(&error))?,
                )
            }
            Act::PutFile(path) => {
                let file = File::open(path).map_err(|error| unsent(&error))?;
                self.agent
                    .run(to("PUT").body(file).map_err(|error| unsent(&error))?)
            }
        };
        let mut response = made.map_err(|error| failed(&error))?;
        let to = match &request.1 {
            Act::GetTo(path) if response.status().is_success() => Some(path),
            _ => None,
        };
        let mut body = Vec::new();
        let read = match to {
            Some(path) => {
                let mut file = File::create(path).map_err(|error| unsent(&error))?;
                io::copy(&mut response.body_mut().as_reader(), &mut file)
            }
            None => response
                .body_mut()
                .as_reader()
                .take(MOST)
                .read_to_end(&mut body)
                .map(|length| length as u64),
        };
        match read {
            Ok(_) => self.answered(&response, body),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                Err(Missed::Failed(Error::NoSpace {
                    path: "the objects of the repository".into(),
                    needed: None,
                }))
            }
            Err(error) => Err(Missed::Cut(format!(
                "the store's answer was cut short: {error}"
            ))),
        }
    }

    /// The URL of a request, which its signature is part of.
    fn signed(&self, credentials: Option<&Credentials>, request: &Request) -> String {
        let bucket = &self.access.bucket;
        let key = format!("{}{}", self.access.prefix, request.0);
        let signed = match &request.1 {
            Act::Get | Act::GetTo(_) => GetObject::new(bucket, credentials, &key).sign(SIGNED_FOR),
            Act::List(mark) => {
                let mut list = GetObject::new(bucket, credentials, "");
                let query = list.query_mut();
                query.insert("list-type", "2");
                query.insert("prefix", key.as_str());
                if let Some(mark) = mark {
                    query.insert("continuation-token", mark.as_str());
                }
                list.sign(SIGNED_FOR)
            }
            Act::Delete => DeleteObject::new(bucket, credentials, &key).sign(SIGNED_FOR),
            Act::Put(_, condition) => {
                let mut put = PutObject::new(bucket, credentials, &key);
                match condition {
                    Some(Condition::Absent) => put.headers_mut().insert("if-none-match", "*"),
                    Some(Condition::Is(tag)) => put.headers_mut().insert("if-match", tag.as_str()),
                    None => {}
                }
                put.sign(SIGNED_FOR)
            }
            Act::PutFile(_) => PutObject::new(bucket, credentials, &key).sign(SIGNED_FOR),
        };
        signed.to_string()
    }

    /// What an answer means.
    fn answered<B>(&self, response: &HttpResponse<B>, body: Vec<u8>) -> Answer<Response> {
        let field = |name: header::HeaderName| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let moment = |name| DateTime::parse_from_rfc2822(&field(name)?).ok();
        let status = response.status().as_u16();
        let text = String::from_utf8_lossy(&body);
        let code = element(&text, "Code").unwrap_or_default();
        let after = || {
            let seconds = field(header::RETRY_AFTER)?.trim().parse().ok()?;
            Some(Duration::from_secs(seconds))
        };
        match (status, code) {
            (404, "NoSuchBucket") | (301 | 307, _) => {}
            // Whether the key has something, or something else, is the caller's to judge.
            (200..=299 | 404 | 412, _) => {
                return Ok(Response {
                    status,
                    tag: field(header::ETAG),
                    now: moment(header::DATE),
                    written: moment(header::LAST_MODIFIED),
                    body,
                });
            }
            // Two wrote at once, and neither was first: the next try shows.
            (408 | 409 | 425 | 429 | 500 | 502..=599, _) | (400, "RequestTimeout") => {
                let said = self.words(status, &text);
                return Err(Missed::Away {
                    said,
                    after: after(),
                });
            }
            _ => {}
        }
        Err(Missed::Refused(self.words(status, &text)))
    }

    /// What the store says, and what to do about it.
    fn words(&self, status: u16, text: &str) -> String {
        let code = element(text, "Code").unwrap_or_default();
        let message = element(text, "Message").unwrap_or_default();
        let bucket = &self.access.bucket;
        let what = match (status, code) {
            (404, _) => format!("; there is no bucket {}, or no store there", bucket.name()),
            (301 | 307, _) | (400, "AuthorizationHeaderMalformed") => {
                format!(
                    "; the bucket is not in the region {}: region=NAME in its URL names another",
                    bucket.region()
                )
            }
            (403, "RequestTimeTooSkewed") => "; this machine's clock is wrong".to_owned(),
            (403, _) => format!(
                "; the keys need s3:GetObject, PutObject, DeleteObject and ListBucket for {}/{}*",
                bucket.name(),
                self.access.prefix
            ),
            _ => String::new(),
        };
        let mut said = [code, message].into_iter().filter(|word| !word.is_empty());
        let said: String = said.join(": ").chars().take(500).collect();
        format!("HTTP {status} {}{what}", escape(&redact(&said))).replace(" ;", ";")
    }
}

/// What a request came to that was not answered.
fn failed(error: &ureq::Error) -> Missed {
    // The URL of a signed request is as good as its keys for a while.
    let said = redact(&error.to_string()).into_owned();
    match error {
        ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
            Missed::Away { said, after: None }
        }
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Missed::Away { said, after: None }
        }
        ureq::Error::BadUri(_) | ureq::Error::Tls(_) | ureq::Error::Rustls(_) => {
            Missed::Refused(said)
        }
        _ => Missed::Cut(said),
    }
}

/// What an element of an answer has; the first of that name.
pub(super) fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>"))
        .map(|(value, _)| value)
}
