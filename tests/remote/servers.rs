//! Real servers, each with one bare repository that has a branch `main`; they end when they are dropped.
//!
//! Object stores have a bucket beside it; what lies there is brought into the repository where a test reads that.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::env::{Ran, TestEnv};

/// Names and values.
pub type Pairs = Vec<(String, String)>;

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By its path.
    Path,
    /// `git daemon`.
    Daemon,
    /// `git http-backend` behind lighttpd, with a user and a password.
    Http,
    /// `sshd`, with a key.
    Ssh,
    /// An object store: `SeaweedFS`.
    Weed,
    /// Another one: moto, which keeps all in memory.
    Moto,
    /// One that does not know conditions: s3rver.
    S3rver,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Path, Self::Daemon, Self::Http, Self::Ssh];
    /// Object stores that compare and swap.
    pub const STORES: [Self; 2] = [Self::Weed, Self::Moto];

    /// Whether it is an object store.
    pub fn is_store(self) -> bool {
        matches!(self, Self::Weed | Self::Moto | Self::S3rver)
    }
}

/// The keys to the stores; s3rver has its own.
pub const KEYS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "S3RVER"),
    ("AWS_SECRET_ACCESS_KEY", "S3RVER"),
];

/// The user and password of the HTTP server.
pub const USER: &str = "runner";
pub const PASSWORD: &str = "hunter22-hunter22";

/// A server with one repository.
pub struct Server {
    pub kind: Kind,
    /// The port that it listens on; 0 for a path.
    pub port: u16,
    folder: TempDir,
    child: Option<Child>,
}

impl Server {
    /// Starts one; `None`, and a line about it, where the program is not installed.
    pub fn start(kind: Kind) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut server = Self {
            kind,
            port: 0,
            folder,
            child: None,
        };
        server.make_repository();
        match kind {
            Kind::Path => {}
            Kind::Daemon => server.start_daemon(),
            Kind::Http => server.start_lighttpd()?,
            Kind::Ssh => server.start_sshd()?,
            Kind::Weed | Kind::Moto | Kind::S3rver => {
                server.port = store_port(kind)?;
                server.store(server.port, "make");
            }
        }
        Some(server)
    }

    /// One of each kind that is installed, object stores among them.
    pub fn everywhere() -> impl Iterator<Item = Self> {
        let all = Kind::ALL.into_iter().chain(Kind::STORES);
        all.filter_map(Self::start)
    }

    /// The URL of the store, at its own port or at that of a proxy.
    pub fn store_url_at(&self, port: u16) -> String {
        format!(
            "s3://{}/team?endpoint=http://127.0.0.1:{port}",
            self.bucket()
        )
    }

    /// A bucket of its own.
    fn bucket(&self) -> String {
        let folder = self.root();
        let name = folder.file_name().expect("a name").to_string_lossy();
        let plain = |c: char| c.to_ascii_lowercase().is_ascii_alphanumeric();
        let name: String = name.chars().filter(|c| plain(*c)).collect();
        format!("b{}", name.to_ascii_lowercase())
    }

    /// Does something to the bucket, and returns what was printed.
    #[track_caller]
    pub fn store(&self, port: u16, command: &str) -> String {
        let mut run = self.store_command(port, command);
        let ran = Ran::of(&run.output().expect("python starts"));
        assert_eq!(ran.code, 0, "{command}\n{}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// The command that does something to the bucket.
    pub fn store_command(&self, port: u16, command: &str) -> Command {
        let python = store_program("python").expect("python is installed with the stores");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/remote/store.py");
        let mut run = Command::new(python);
        run.arg(script)
            .arg(format!("http://127.0.0.1:{port}"))
            .args([&self.bucket(), command])
            .arg(self.repository())
            .envs(KEYS)
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        run
    }

    /// Brings what lies in the bucket into the repository.
    fn sync(&self) {
        if self.kind.is_store() && self.port != 0 {
            self.store(self.port, "sync");
        }
    }

    /// One of each kind that is installed.
    pub fn all() -> impl Iterator<Item = Self> {
        Kind::ALL.into_iter().filter_map(Self::start)
    }

    /// Its folder.
    pub fn root(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).expect("its real path")
    }

    /// The bare repository.
    pub fn repository(&self) -> PathBuf {
        self.root().join("git/project.git")
    }

    /// Its URL, at its own port or at that of a proxy.
    pub fn url_at(&self, port: u16) -> String {
        let path = self.repository();
        match self.kind {
            Kind::Path | Kind::Weed | Kind::Moto | Kind::S3rver => path.display().to_string(),
            Kind::Daemon => format!("git://127.0.0.1:{port}/project.git"),
            Kind::Http => format!("http://127.0.0.1:{port}/git/project.git"),
            Kind::Ssh => format!("ssh://127.0.0.1:{port}{}", path.display()),
        }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// What a machine needs to log in: settings of git, and variables.
    pub fn login(&self) -> (Pairs, Pairs) {
        let helper = format!("store --file={}", self.root().join("credentials").display());
        let ssh = format!("ssh -F {}", self.root().join("ssh_config").display());
        match self.kind {
            Kind::Http => (vec![("credential.helper".to_owned(), helper)], Vec::new()),
            Kind::Ssh => (Vec::new(), vec![("GIT_SSH_COMMAND".to_owned(), ssh)]),
            Kind::Weed | Kind::Moto | Kind::S3rver => {
                let keys = KEYS.map(|(name, value)| (name.to_owned(), value.to_owned()));
                (Vec::new(), keys.to_vec())
            }
            Kind::Path | Kind::Daemon => (Vec::new(), Vec::new()),
        }
    }

    /// Runs git in the bare repository and returns what it printed.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        self.sync();
        let output = git(&self.repository())
            .args(args)
            .output()
            .expect("git starts");
        let ran = Ran::of(&output);
        assert_eq!(ran.code, 0, "git {args:?}\n{}{}", ran.stdout, ran.stderr);
        if self.kind.is_store() && args[0] == "update-ref" {
            self.store(self.port, "publish");
        }
        ran.stdout
    }

    /// The same; `None` where git fails.
    pub fn try_git(&self, args: &[&str]) -> Option<String> {
        let output = git(&self.repository())
            .args(args)
            .output()
            .expect("git starts");
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What a reference names there; `None` where it is not there.
    pub fn at(&self, name: &str) -> Option<String> {
        self.sync();
        let output = git(&self.repository())
            .args(["rev-parse", "--verify", "-q", name])
            .output()
            .expect("git starts");
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Neither forced pushes nor deletions are taken from now on. What git has for it is about branches alone.
    pub fn make_strict(&self) {
        self.git(&["config", "receive.denyNonFastForwards", "true"]);
        self.git(&["config", "receive.denyDeletes", "true"]);
        let none = "0000000000000000000000000000000000000000";
        let body = format!(
            "if [ \"$3\" = {none} ]; then echo 'deletion prohibited' >&2; exit 1; fi\n\
             if [ \"$2\" != {none} ] && ! git merge-base --is-ancestor \"$2\" \"$3\"; then\n\
             echo 'denying non-fast-forward' >&2; exit 1; fi"
        );
        self.hook("update", &body);
    }

    /// Installs a hook of the server's.
    pub fn hook(&self, name: &str, body: &str) {
        script(&self.repository().join("hooks").join(name), body);
    }

    /// Has every change of a run's reference written to [`Self::history`], with the claim that it made.
    pub fn record_history(&self) {
        let log = self.root().join("history");
        let body = format!(
            "[ \"$1\" = committed ] || exit 0\n\
             while read -r old new name; do\n\
             case $name in refs/recover-runs*) ;; *) continue ;; esac\n\
             claim=$(git cat-file blob \"$new:claim.json\" 2> /dev/null | tr -d '\\n')\n\
             printf '%s\\t%s\\t%s\\t%s\\t%s\\n' \"$(date +%s%N)\" \"$name\" \"$old\" \"$new\" \"$claim\" >> {}\n\
             done",
            log.display()
        );
        self.hook("reference-transaction", &body);
    }

    /// The changes so far, oldest first.
    pub fn history(&self) -> Vec<Change> {
        let text = if self.kind.is_store() {
            self.sync();
            self.store(self.port, "history")
        } else {
            fs::read_to_string(self.root().join("history")).unwrap_or_default()
        };
        let change = |line: &str| {
            let mut fields = line.split('\t').map(str::to_owned);
            let mut next = || fields.next().unwrap_or_default();
            let at = next().parse().expect("nanoseconds");
            Change {
                at,
                name: next(),
                old: next(),
                new: next(),
                claim: serde_json::from_str(&next()).unwrap_or_default(),
            }
        };
        text.lines().map(change).collect()
    }

    fn make_repository(&self) {
        let repository = self.repository();
        fs::create_dir_all(&repository).expect("a folder");
        self.git(&["init", "-q", "--bare", "-b", "main"]);
        // A partial clone asks for objects by their ids.
        for setting in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
            self.git(&["config", setting, "true"]);
        }
        let env = TestEnv::repo();
        env.write("src/lib.rs", "pub fn one() -> u32 {\n    1\n}\n");
        env.git(&["add", "-A"]);
        env.git(&["commit", "-q", "-m", "second"]);
        env.git(&["push", "-q", &repository.display().to_string(), "main"]);
    }

    fn start_daemon(&mut self) {
        self.port = free_port();
        let output = Command::new("git")
            .arg("--exec-path")
            .output()
            .expect("git starts");
        let program = Path::new(String::from_utf8_lossy(&output.stdout).trim()).join("git-daemon");
        let mut command = Command::new(program);
        command.args([
            "--reuseaddr",
            "--export-all",
            "--enable=receive-pack",
            "--listen=127.0.0.1",
        ]);
        command
            .arg(format!("--port={}", self.port))
            .arg(format!("--base-path={}", self.root().join("git").display()));
        self.spawn(command);
    }

    fn start_lighttpd(&mut self) -> Option<()> {
        let program = installed("lighttpd")?;
        self.port = free_port();
        let root = self.root();
        let output = Command::new("git")
            .arg("--exec-path")
            .output()
            .expect("git starts");
        let exec_path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        fs::write(root.join("passwords"), format!("{USER}:{PASSWORD}\n")).expect("written");
        self.know_password(self.port);
        let conf = format!(
            "server.modules = (\"mod_auth\", \"mod_authn_file\", \"mod_alias\", \"mod_setenv\", \"mod_cgi\")\n\
             server.document-root = \"{root}\"\nserver.bind = \"127.0.0.1\"\nserver.port = {port}\n\
             server.errorlog = \"{root}/lighttpd.log\"\n\
             alias.url = (\"/git\" => \"{exec_path}/git-http-backend\")\n\
             $HTTP[\"url\"] =~ \"^/git\" {{\n\
             cgi.assign = (\"\" => \"\")\n\
             setenv.set-environment = (\"GIT_PROJECT_ROOT\" => \"{root}/git\", \"GIT_HTTP_EXPORT_ALL\" => \"1\", \
             \"PATH\" => \"{path}\")\n\
             auth.backend = \"plain\"\nauth.backend.plain.userfile = \"{root}/passwords\"\n\
             auth.require = (\"\" => (\"method\" => \"basic\", \"realm\" => \"git\", \"require\" => \"valid-user\"))\n}}\n",
            root = root.display(),
            port = self.port,
            path = std::env::var("PATH").unwrap_or_default(),
        );
        fs::write(root.join("lighttpd.conf"), conf).expect("written");
        let mut command = Command::new(program);
        command.arg("-D").arg("-f").arg(root.join("lighttpd.conf"));
        self.spawn(command);
        Some(())
    }

    /// Lets git know the password at a port, its own or that of a proxy.
    pub fn know_password(&self, port: u16) {
        let file = self.root().join("credentials");
        let known = fs::read_to_string(&file).unwrap_or_default();
        fs::write(
            &file,
            format!("{known}http://{USER}:{PASSWORD}@127.0.0.1%3a{port}\n"),
        )
        .expect("written");
    }

    fn start_sshd(&mut self) -> Option<()> {
        let program = installed("sshd")?;
        let root = self.root();
        if nix_root() {
            // The system's own service makes it where it runs.
            let _ = fs::create_dir_all("/run/sshd");
        }
        for key in ["host_key", "user_key"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen
                .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
                .arg(root.join(key));
            assert!(
                keygen.status().is_ok_and(|status| status.success()),
                "ssh-keygen"
            );
        }
        fs::copy(root.join("user_key.pub"), root.join("authorized_keys")).expect("copied");
        self.port = free_port();
        let conf = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {root}/host_key\nAuthorizedKeysFile {root}/authorized_keys\n\
             PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PermitRootLogin prohibit-password\nMaxStartups 100\nSetEnv PATH={path}\n",
            port = self.port,
            root = root.display(),
            path = std::env::var("PATH").unwrap_or_default(),
        );
        fs::write(root.join("sshd_config"), conf).expect("written");
        let client = format!(
            "Host *\nIdentityFile {root}/user_key\nIdentitiesOnly yes\nUserKnownHostsFile {root}/known_hosts\n\
             StrictHostKeyChecking accept-new\nNoHostAuthenticationForLocalhost yes\nLogLevel ERROR\n",
            root = root.display()
        );
        fs::write(root.join("ssh_config"), client).expect("written");
        let mut command = Command::new(program);
        command
            .args(["-D", "-e", "-f"])
            .arg(root.join("sshd_config"));
        self.spawn(command);
        Some(())
    }

    fn spawn(&mut self, mut command: Command) {
        let log = fs::File::create(self.root().join("log")).expect("a log");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .current_dir(self.root());
        // What the user has configured is none of the server's business.
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        self.child = Some(child);
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = || fs::read_to_string(self.root().join("log")).unwrap_or_default();
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{:?} does not listen: {}",
                self.kind,
                log()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Where the object stores are installed: `RECOVER_STORES` names folders, with `:` between them.
fn store_program(name: &str) -> Option<PathBuf> {
    let folders = std::env::var("RECOVER_STORES").unwrap_or_default();
    let mut places = folders
        .split(':')
        .filter(|folder| !folder.is_empty())
        .map(|folder| Path::new(folder).join(name));
    let found = places.find(|place| place.is_file());
    if found.is_none() {
        eprintln!("skipped: {name} is missing (RECOVER_STORES)");
    }
    found
}

/// The port of a store, one for all tests of this process; it ends with it.
fn store_port(kind: Kind) -> Option<u16> {
    static PORTS: Mutex<Vec<(Kind, Option<u16>)>> = Mutex::new(Vec::new());
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, port)) = ports.iter().find(|(known, _)| *known == kind) {
        return *port;
    }
    let port = start_store(kind);
    ports.push((kind, port));
    port
}

fn start_store(kind: Kind) -> Option<u16> {
    let name = match kind {
        Kind::Weed => "weed",
        Kind::Moto => "moto_server",
        _ => "s3rver",
    };
    // The bucket is made, and read, with boto3.
    let (program, python) = (store_program(name)?, store_program("python")?);
    // Each of those of `SeaweedFS` has another one that is 10,000 higher.
    let port = fastrand::u16(12_000..20_000) / 10 * 10;
    let args = match kind {
        Kind::Weed => format!(
            "server -dir=. -ip=127.0.0.1 -master.port={} -volume.port={} -filer.port={} -s3 -s3.port={port} \
             -s3.port.iceberg=0 -s3.port.lance=0 -s3.config=s3.json -s3.iam=false -master.volumeSizeLimitMB=64 \
             -volume.max=500 -master.telemetry=false",
            port + 1,
            port + 2,
            port + 3
        ),
        Kind::Moto => format!(
            "'{}/tests/remote/one_at_a_time.py' -H 127.0.0.1 -p {port}",
            env!("CARGO_MANIFEST_DIR")
        ),
        _ => format!("-a 127.0.0.1 -p {port} -d ."),
    };
    let program = if kind == Kind::Moto { python } else { program };
    let keys = format!(
        "{{\"identities\":[{{\"name\":\"t\",\"actions\":[\"Admin\",\"Read\",\"Write\",\"List\"],\
         \"credentials\":[{{\"accessKey\":\"{0}\",\"secretKey\":\"{0}\"}}]}}]}}",
        KEYS[0].1
    );
    // It ends when nobody holds the other end of its input, and takes its folder with it.
    let script = format!(
        "exec 3<&0; folder=$(mktemp -d) && cd \"$folder\" && printf '%s' '{keys}' > s3.json || exit 1\n\
         '{}' {args} > log 2>&1 < /dev/null 3<&- &\n\
         cat <&3 > /dev/null; kill $!; wait; rm -rf \"$folder\"",
        program.display()
    );
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .spawn()
        .expect("sh starts");
    std::mem::forget(child.stdin.take());
    std::thread::spawn(move || child.wait());
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{name} does not listen"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    Some(port)
}

/// A change of a run's reference at the server.
#[derive(Clone, Debug)]
pub struct Change {
    /// Nanoseconds since 1970.
    pub at: u128,
    pub name: String,
    pub old: String,
    pub new: String,
    /// `null` where it holds none.
    pub claim: serde_json::Value,
}

/// An executable script.
pub fn script(path: &Path, body: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, format!("#!/bin/sh\n{body}\n")).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("executable");
}

/// git without anybody's configuration.
fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

/// A port that nobody listens on, nor will another test of this process.
pub fn free_port() -> u16 {
    static LAST: AtomicU16 = AtomicU16::new(0);
    loop {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("its address").port();
        if LAST.swap(port, Ordering::Relaxed) != port {
            return port;
        }
    }
}

fn nix_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id starts");
    output.stdout == b"0\n"
}

/// Where a program is; `None`, and a line about it, where it is not installed.
fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path
        .split(':')
        .map(PathBuf::from)
        .chain(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let found = folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: {name} is missing");
    }
    found
}
