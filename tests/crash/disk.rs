//! A disk that records every write and flush in the order in which they arrive.
//!
//! It is a file served by FUSE, for a loop device above it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// What arrived at the disk.
#[derive(Debug)]
pub enum Request {
    Write { offset: u64, data: Vec<u8> },
    Flush,
}

type Log = Arc<Mutex<Vec<Request>>>;

/// The requests so far; the disk is served until its file is unmounted.
pub struct Disk {
    log: Log,
}

/// The largest write that the kernel may send, in bytes.
const MAX_WRITE: u32 = 1 << 20;

const ENOENT: i32 = 2;
const EINTR: i32 = 4;
const EPERM: i32 = 1;
const EIO: i32 = 5;
const EAGAIN: i32 = 11;
const ENOSYS: i32 = 38;

impl Disk {
    /// Serves the image in place of the file `over`.
    pub fn serve(image: &Path, over: &Path) -> Result<Self, String> {
        let open = |path: &Path| {
            File::options()
                .read(true)
                .write(true)
                .open(path)
                .map_err(|error| error.to_string())
        };
        let device = open(Path::new("/dev/fuse")).map_err(|error| format!("/dev/fuse: {error}"))?;
        let image = open(image)?;
        let log = Log::default();
        let server = Server {
            device: device.try_clone().map_err(|error| error.to_string())?,
            size: image.metadata().map_err(|error| error.to_string())?.len(),
            image,
            log: log.clone(),
        };
        thread::spawn(move || server.serve());
        // The descriptor is the command's standard input; the root of the file system is a regular file.
        let options = "fd=0,rootmode=100600,user_id=0,group_id=0,allow_other";
        let mount = Command::new("mount")
            .args(["-i", "-t", "fuse", "-o", options, "power"])
            .arg(over)
            .stdin(Stdio::from(device))
            .output()
            .map_err(|error| format!("mount: {error}"))?;
        if mount.status.success() {
            Ok(Self { log })
        } else {
            Err(String::from_utf8_lossy(&mount.stderr).into_owned())
        }
    }

    /// How many requests arrived.
    pub fn position(&self) -> usize {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// The requests.
    pub fn into_log(self) -> Vec<Request> {
        std::mem::take(&mut *self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Applies what a disk wrote that lost its power after `log`: everything up to the last flush, and of the later writes
/// whatever `writes` says of each sector of so many bytes.
pub fn replay(
    image: &Path,
    log: &[Request],
    sector_bytes: usize,
    mut writes: impl FnMut(&mut dyn Iterator<Item = usize>) -> Vec<usize>,
) {
    let image = File::options().write(true).open(image).expect("the image");
    let safe = log
        .iter()
        .rposition(|request| matches!(request, Request::Flush))
        .unwrap_or(0);
    for (at, request) in log.iter().enumerate() {
        let Request::Write { offset, data } = request else {
            continue;
        };
        if at < safe {
            image.write_all_at(data, *offset).expect("written");
            continue;
        }
        for sector in writes(&mut (0..data.len().div_ceil(sector_bytes))) {
            let start = sector * sector_bytes;
            let part = &data[start..data.len().min(start + sector_bytes)];
            image
                .write_all_at(part, offset + start as u64)
                .expect("written");
        }
    }
}

/// Answers the kernel's requests for one file (the protocol of `linux/fuse.h`, 7.31).
struct Server {
    device: File,
    image: File,
    size: u64,
    log: Log,
}

/// A number of a request.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut whole = [0; 8];
    whole[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(whole)
}

impl Server {
    fn serve(&self) {
        let mut buffer = vec![0; MAX_WRITE as usize + 8192];
        let mut unmounted = 0;
        loop {
            match (&self.device).read(&mut buffer) {
                Ok(size) => self.answer(&buffer[..size]),
                Err(error) => match error.raw_os_error() {
                    Some(EINTR | EAGAIN | ENOENT) => {}
                    // Not mounted yet.
                    Some(EPERM) if unmounted < 10_000 => {
                        unmounted += 1;
                        thread::sleep(Duration::from_millis(1));
                    }
                    _ => return,
                },
            }
        }
    }

    fn answer(&self, request: &[u8]) {
        // The header: length, operation, number of the request, and what does not matter for one file.
        let (operation, unique, body) =
            (number(request, 4, 4), number(request, 8, 8), &request[40..]);
        let answer = match operation {
            // FORGET, INTERRUPT and BATCH_FORGET have no answer.
            2 | 36 | 42 => return,
            // GETATTR, SETATTR
            3 | 4 => Ok(self.attributes()),
            // OPEN
            14 => Ok(vec![0; 16]),
            15 => self.read(body),
            16 => self.write(body),
            // STATFS
            17 => Ok(vec![0; 80]),
            // FSYNC
            20 => {
                self.record(Request::Flush);
                Ok(Vec::new())
            }
            26 => Ok(Self::init(body)),
            // RELEASE, FLUSH, DESTROY
            18 | 25 | 38 => Ok(Vec::new()),
            _ => Err(ENOSYS),
        };
        let (error, data) = match answer {
            Ok(data) => (0, data),
            Err(error) => (-error, Vec::new()),
        };
        let mut answer = Vec::with_capacity(16 + data.len());
        answer.extend(
            u32::try_from(16 + data.len())
                .expect("a size")
                .to_le_bytes(),
        );
        answer.extend(error.to_le_bytes());
        answer.extend(unique.to_le_bytes());
        answer.extend(data);
        // It fails where the request was interrupted: nobody waits for it.
        drop((&self.device).write(&answer));
    }

    fn init(body: &[u8]) -> Vec<u8> {
        const BIG_WRITES: u32 = 1 << 5;
        const MAX_PAGES: u32 = 1 << 22;
        let mut answer = Vec::new();
        for part in [
            7,
            31,
            u32::try_from(number(body, 8, 4)).expect("32 bits"),
            BIG_WRITES | MAX_PAGES,
        ] {
            answer.extend(part.to_le_bytes());
        }
        // How many requests in the background, and from how many on it is crowded: the kernel's own.
        answer.extend([0; 4]);
        answer.extend(MAX_WRITE.to_le_bytes());
        // The granularity of times in nanoseconds, the largest request in pages.
        answer.extend(1_u32.to_le_bytes());
        answer.extend(
            u16::try_from(MAX_WRITE / 4096)
                .expect("pages")
                .to_le_bytes(),
        );
        answer.resize(64, 0);
        answer
    }

    fn attributes(&self) -> Vec<u8> {
        let mut answer = vec![0; 104];
        // Its node, size and blocks; mode, links and block size.
        answer[16..24].copy_from_slice(&1_u64.to_le_bytes());
        answer[24..32].copy_from_slice(&self.size.to_le_bytes());
        answer[32..40].copy_from_slice(&(self.size / 512).to_le_bytes());
        answer[76..80].copy_from_slice(&0o100_600_u32.to_le_bytes());
        answer[80..84].copy_from_slice(&1_u32.to_le_bytes());
        answer[96..100].copy_from_slice(&4096_u32.to_le_bytes());
        answer
    }

    fn read(&self, body: &[u8]) -> Result<Vec<u8>, i32> {
        let (offset, size) = (number(body, 8, 8), number(body, 16, 4));
        let size = size.min(self.size.saturating_sub(offset));
        let mut data = vec![0; usize::try_from(size).map_err(|_| EIO)?];
        self.image
            .read_exact_at(&mut data, offset)
            .map_err(|_| EIO)?;
        Ok(data)
    }

    fn write(&self, body: &[u8]) -> Result<Vec<u8>, i32> {
        let (offset, data) = (number(body, 8, 8), body[40..].to_vec());
        let size = u32::try_from(data.len()).map_err(|_| EIO)?;
        self.image.write_all_at(&data, offset).map_err(|_| EIO)?;
        self.record(Request::Write { offset, data });
        let mut answer = size.to_le_bytes().to_vec();
        answer.resize(8, 0);
        Ok(answer)
    }

    fn record(&self, request: Request) {
        self.log
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request);
    }
}
