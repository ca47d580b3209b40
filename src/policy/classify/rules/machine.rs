//! The machine or a server refused: disk, permissions, limits, locks, missing tools, credentials, no connection.

use super::{
    AGENT, ANY, BUILD, DENIED, DISK_FULL, FEEDBACK, LIMIT, LOCKED, NETWORK, NO_TOOL, Rule,
    UNAUTHORIZED, rule, table,
};

pub(super) const RULES: &[Rule] = &table(
    ANY,
    DENIED,
    [
        // Watchers and instances share the code of a full disk.
        rule(
            "limit.watchers",
            r"(?i)file watchers reached|inotify (?:instances|watch(?:es)?) (?:limit|reached)|inotify_(?:init1?|add_watch)\b.*(?:No space|Too many)|max_user_(?:watches|instances)|ENOSPC.*\bwatch\b",
        )
        .means(LIMIT),
        rule(
            "disk.full",
            r"(?:^|[:;(=>\]] *|- |ERROR )[Nn]o space left on device(?:$|[ .,;:()\]']|\x22\))|: '[Nn]o space left on device'|\b(?:ENOSPC|enospc)\b|\(os error 28\)|\[Errno 28\]|errno[ =:]+28\b",
        )
        .means(DISK_FULL),
        rule(
            "disk.full-words",
            r"(?i)(?:^|[:;(] *)(?:there is )?not enough (?:free )?(?:space on (?:the )?dis[kc]|disk space)|(?:^|: )(?:insufficient|out of|low on) (?:free )?disk space|don't have enough free space in|database or disk is full|(?:^|: )disk (?:is )?full\b|you don't have enough free space|write error:? .*no space|no space left on (?:disk|volume|the device)|out of inodes|no free inodes|not sufficient (?:disk )?space|StorageFull|\b(?:wrote only \d+ of \d+ bytes|short write)\b|needs? .* (?:MB|GB|bytes) .*available (?:disk )?space",
        )
        .means(DISK_FULL),
        rule(
            "disk.quota",
            r"(?i)(?:^|[:;(] *)disk quota exceeded|\bquota (?:is |was )?(?:reached|exceeded|exhausted) (?:on|for) (?:the )?(?:volume|device|dis[kc]|file ?system|/)|\bEDQUOT\b|\(os error 122\)|\[Errno 122\]",
        )
        .means(DISK_FULL),
        rule(
            "disk.full-locale",
            r"Auf dem Gerät ist kein Speicherplatz mehr|Kein Speicherplatz|Aucun espace disponible|Plus d'espace disponible|No queda espacio en el dispositivo|Não há espaço|Spazio esaurito|На устройстве не осталось|设备上没有空间|デバイスに空き領域",
        )
        .means(DISK_FULL),
        rule(
            "limit.open-files",
            r"(?:^|[:;(] *|\] )[Tt]oo many open files|\b(?:EMFILE|emfile)\b|\bENFILE\b|\(os error (?:24|23)\)|\[Errno 2[34]\]|Zu viele offene Dateien|Trop de fichiers ouverts|Demasiados archivos abiertos",
        )
        .means(LIMIT),
        // A lock that may not be made is no lock that a process holds.
        rule(
            "denied.read-only",
            r"(?:^|[:;(] *'?)(?:[Rr]ead-only file ?system)\b|(?i:\battempt(?:ed)? to (?:write|modify|change) (?:to )?(?:a |the )?read-?only\b)|\b(?:EROFS|erofs)\b|ReadOnlyFileSystem(?:Exception)?\b|\(os error 30\)|\[Errno 30\]|Das Dateisystem ist nur lesbar|Système de fichiers accessible en lecture seul|Sistema de ficheros de sólo lectura|Sistema de archivos de s(?:ó|o)lo lectura",
        ),
        rule(
            "denied.access",
            r"(?:^|[:;(\]=>] *|- |ERROR |with |error |failed )[Pp]ermission denied(?:$|[ .,;:()\]'!?]|\x22\))|: '[Pp]ermission denied'|\b(?:EACCES|eacces)\b|(?:error: |: )AccessDenied$|\(os error 13\)|\[Errno 13\]|\berrno[ =:]+13\b|\(13: Permission denied\)|kind: PermissionDenied",
        ),
        rule(
            "denied.operation",
            r"(?:^|[:;(] *)[Oo]peration not permitted(?:$|[ .,;:()'])|\b(?:EPERM|eperm)\b|\(os error 1\)|\[Errno 1\]",
        ),
        rule(
            "lock.again",
            r"(?:^|[:;(] *)Resource temporarily unavailable(?:$|[^\w ]| [^(])|\bEAGAIN\b|\(os error 11\)|\[Errno 11\]|(?:fork|vfork|clone): retry|Die Ressource ist zur Zeit nicht verfügbar|Ressource temporairement non disponible|Recurso no disponible temporalmente|pthread_create failed|unable to create (?:new )?(?:native )?thread|failed to spawn thread|can't start new thread",
        )
        .means(LOCKED),
        rule(
            "lock.file",
            r"(?i)index\.lock': File exists|another git process seems|cannot lock ref\b|unable to (?:acquire|obtain|get|lock) (?:the )?(?:\S+ )?(?:lock|administration directory)|could not (?:get|acquire|obtain) (?:the )?(?:\S+ ){0,2}lock\b|failed to (?:acquire|obtain|get) (?:the )?(?:\S+ ){0,3}lock\b|(?:is )?(?:currently )?(?:locked|held|in use) by (?:another )?(?:\S+ )?(?:process|instance|daemon|pid)|another (?:instance|process|program|copy)\b.{0,40}\b(?:is (?:already |currently )?(?:running|using|holding)|holds|has (?:the )?lock)|another \w+(?: \w+){0,2} (?:is|are) (?:already |currently |still )?(?:running|in progress|under way|active)\b|\block(?: file)? ['\x22`]?[\w./-]+['\x22`]? (?:is )?(?:already |still |currently )?(?:held|taken|busy)\b|\bis already locked\b|^\W*(?:\S+: ){0,3}(?:working (?:copy|directory|tree)|repository|store|state|cache|index|workspace) (?:\S+ )?(?:is )?(?:already |currently )?locked\b|database is locked|timeout waiting (?:to lock|for (?:the )?lock)|(?:acquiring|obtaining) (?:the )?(?:\S+ )?lock\b|waiting for (?:the )?(?:\S+ )?lock .*(?:gave up|failed|timed out)|lock (?:file )?(?:\S+ )?(?:already exists|is held|exists)|is another process using it|unable to lock (?:the )?database|(?:could not|cannot|unable to) (?:create|open|take) lock ?file",
        )
        .means(LOCKED),
        rule(
            "lock.busy",
            r"(?:^|: )(?:Text file busy|Device or resource busy)|(?i:\bresource (?:is )?busy\b)|\bE(?:TXTBSY|BUSY)\b|\(os error (?:26|16)\)|\[Errno (?:26|16)\]|EADDRINUSE|[Aa]ddress already in use|port (?:\d+ )?is already (?:in use|allocated)",
        )
        .means(LOCKED),
        rule(
            "denied.windows",
            r"(?:^|: )Access is denied\b|\(os error 5\)|\[WinError 5\]|UnauthorizedAccessException|Access to the path '.*' is denied|AccessDeniedException|AccessControlException",
        ),
        rule(
            "limit.root",
            r"(?i)\b(?:cannot|can't|may not|refus(?:es|ing) to) (?:be )?run (?:\S+ ){0,2}as (?:the )?(?:root|superuser|administrator)\b|\brunning as root\b.{0,40}\bnot (?:supported|allowed|permitted)|\bexecution by \W?root\W? .{0,40}not permitted|\W?\broot\W? execution of .{0,60}not permitted",
        )
        .means(LIMIT),
        rule(
            "denied.words",
            r"(?i)insufficient permission|(?:^|[:.,;(] *|since |because |as )(?:you|user \S+|we) (?:do not|don't|does not) have (?:the )?(?:sufficient |required |write |necessary )?(?:permissions?|write access|the permissions)\b|are you root\?|must be (?:run as )?(?:root|superuser)|requires? (?:root|superuser|administrator) (?:privilege|access|permission)|not in the sudoers|sudo: .*password is required|a terminal is required to read the password|you cannot perform this operation unless you are root|permission denied while trying to connect|dubious ownership|needs? to be run as root|no write access|^! I can't write on file |is not writ(?:e)?able(?:$|[ .,;:])|not have write permissions|unable to write .*: permission|cannot write .*permission|write permission",
        ),
        rule(
            "denied.credentials",
            r"Permission denied \((?:publickey|password)|Host key verification failed",
        )
        .at(FEEDBACK),
        rule(
            "denied.locale",
            r"(?:: )(?:Keine Berechtigung|Erlaubnis verweigert|Zugriff verweigert|Accès refusé|Acceso denegado|Accesso negato|Acesso negado|Permission non accordée|Permiso denegado|Permissão negada|Permesso negato|Отказано в доступе|许可权不够|权限不够|許可がありません|Vorgang nicht zulässig|Opération non permise|Operación no permitida)",
        ),
        rule(
            "limit.argument-list",
            r": Argument list too long|\bE2BIG\b|\(os error 7\)|\[Errno 7\]",
        )
        .means(LIMIT),
        rule(
            "limit.other",
            r"(?:^|: )(?:File too large|Too many levels of symbolic links|File name too long|Input/output error|Stale file handle|Bad file descriptor|File size limit exceeded|Too many users|No such device(?: or address)?|Structure needs cleaning|Value too large for defined data type)$|\bE(?:FBIG|IO|STALE|NAMETOOLONG|ELOOP|LOOP)\b: |\(os error (?:5|27|116|36|40)\)|\[Errno (?:5|27|116|36|40)\]|too many processes|maximum number of processes|max user processes",
        )
        .means(LIMIT),
    ],
);

/// A program, an interpreter, a library of the machine.
pub(super) const MISSING_TOOL: &[Rule] = &table(
    ANY,
    NO_TOOL,
    [
        rule(
            "tool.shell",
            r"(?i)(?:^|: )command not found(?:$|: |[ .])|^\S*sh: (?:line )?\d+: .+: not found$|^\S+: \d+: \S+: not found$|^zsh:\d+: command not found|is not recognized as (?:an internal|the name of)|: command not found$|unknown command: \S+ not found|^fish: Unknown command",
        ),
        rule(
            "tool.shell-locale",
            r"Kommando nicht gefunden|Befehl nicht gefunden|commande introuvable|orden no encontrada|no se encontró la orden|comando non trovato|comando não encontrado|команда не найдена|未找到命令|コマンドが見つかりません",
        ),
        rule(
            "tool.env",
            r"^(?:/usr/bin/)?env: .+: |/usr/bin/env: \S+: No such file|bad interpreter: |cannot execute: required file not found|no such file or directory: .*interpreter",
        ),
        rule(
            "tool.library",
            r"error while loading shared libraries|(?i)\b(?:cannot open shared object file|Library not loaded: |dyld\[?\d*\]?: .*(?:image|library) not (?:found|loaded))|: version `(?:GLIBC|GLIBCXX|CXXABI)\S*' not found|DLL load failed",
        ),
        rule(
            "tool.linker",
            r"linker `[^`]+` not found|collect2: fatal error: cannot find '?\S*ld|invalid linker name in argument|cannot find 'ld'|fatal error: cannot execute .*(?:cc1|as|ld)|(?:g?cc|g\+\+|clang)(?:\+\+)?: (?:fatal )?error: (?:cannot execute|unable to execute command|.*cc1\S*: No such file)",
        )
        .at(FEEDBACK),
        rule(
            "tool.cargo",
            r"^error: no such (?:sub)?command: `|error: toolchain '\S+' is not installed|is not installed for the toolchain|error: '\S+' is not installed|the `\S+` (?:binary|component).* is not (?:installed|available|applicable)|unknown proxy name|target may not be installed|can't find crate for `(?:std|core|test)`",
        ),
        rule(
            "tool.python-module",
            r"(?:^|/)(?:python|pypy)[\d.]*(?:\.exe)?: No module named|^(?:\S*python\S*): Error while finding module specification|^No module named (?:pytest|pip|mypy|ruff|flake8|pylint|black|tox|nox|poetry|coverage|build|venv|isort|unittest2|nose2?|pyright)\b|No Python at |did not find executable at",
        ),
        rule(
            "tool.exec",
            r"executable file not found in \$?%?PATH|\bspawn(?:Sync)? \S+ ENOENT|(?:posix_spawn|execvp|execve|CreateProcess)\S*:? .*No such file or directory|(?i:failed to (?:execute|run|spawn|find|start|launch) (?:the )?(?:command|tool|program|process|executable|binary|linker|compiler)?).*(?:No such file or directory|not found|os error 2)|\(never executed\)|^\S*make(?:\[\d+\])?: \S+: (?:No such file or directory|Command not found|Datei oder Verzeichnis nicht gefunden|Aucun fichier ou dossier)|(?i:could not (?:execute|run|start) (?:command|process|program)).*No such file|command '\S+' failed: No such file|error: \[Errno 2\] No such file or directory: '(?:gcc|cc|g\+\+|clang|cmake|make|git|ninja|node|npm|cargo|rustc|go|java|\w+-config)\S*'",
        ),
        // A program if it was to be started, else a file: what was called tells (`Feedback::opened_file`).
        rule(
            "tool.python-start",
            r"FileNotFoundError: \[Errno 2\] No such file or directory: '[\w+-]{1,24}(?:\.(?:exe|py|sh))?'$",
        ),
        rule(
            "tool.compiler",
            r"no acceptable C compiler found|C(?:\+\+)? compiler cannot be found|No CMAKE_\w+_COMPILER could be found|unable to find a build program corresponding|is not a full path and was not found in the PATH|Unknown compiler\(s\)|(?i)is `?(?:cmake|pkg-config|protoc|nasm|perl|make|ninja|clang|llvm-config)`? (?:not )?installed\?|could not find `?(?:protoc|cmake|pkg-config|nasm|llvm-config|bison|flex)\b|pkg-config (?:command |script )?(?:could not be|was not|not) found|The pkg-config script could not be found|Microsoft Visual C\+\+ \d+\.\d+ or greater is required|xcrun: error: |no developer tools were found|unable to find (?:utility|libclang)|No C compiler|(?i:could not find (?:a|any) (?:\S+ )?compiler)|compiler not found",
        )
        .at(FEEDBACK),
        rule(
            "tool.java",
            r"Unable to locate a Java Runtime|JAVA_HOME (?:is not set|environment variable is not)|JAVA_HOME is set to an invalid directory|No compiler is provided in this environment|Cannot find a Java installation|No matching toolchains? found|No locally installed toolchains match|SDK location not found|ANDROID_(?:HOME|SDK_ROOT) .*not set",
        ),
        rule(
            "tool.browser",
            r"Executable doesn't exist at|(?i)could not find (?:google )?chrom(?:e|ium)|no usable (?:browser|chrome)|no binary for Chrome\w* browser|cannot find (?:Chrome|Firefox) binary|Cypress (?:verification|executable) .*(?:not found|missing)|The cypress npm package is installed, but the Cypress binary is missing|Missing X server|Your system is missing the dependency",
        )
        .at(FEEDBACK),
        rule(
            "tool.subcommand",
            r"^(?:git|docker|cargo|kubectl|go|hg|pyenv|rbenv): '?\S+'? is not a \S+ command|: '\S+' is not a git command|docker: '\S+' is not a docker command|docker: unknown command|go: no such tool|gh: unknown command|^error: unknown command: cargo",
        ),
        rule(
            "tool.version-manager",
            r"(?:pyenv|rbenv|nodenv|jenv|asdf|mise|volta|nvm|fnm)\S*[: ].*(?:not installed|No version is set|command not found|is not yet installed)|N/A: version .* is not yet installed|No version is set for command|A compatible \.NET SDK was not found|The command could not be loaded, possibly because|No \.NET SDKs were found|You must install (?:or update )?\.NET|can't find gem (?:bundler|rake)|Could not find 'bundler'|sdkmanager not found|unable to find (?:xcodebuild|simctl)",
        ),
        rule(
            "tool.daemon",
            r"(?i)could not connect to docker|Docker (?:is not running|environment should have|engine is not running)|Could not find a valid Docker environment",
        )
        .at(FEEDBACK),
        rule(
            "tool.hook",
            r"(?i)\bExecutable `[^`]+` not found|\bfailed to spawn: [`'\x22]?\w|: [\w.+-]+ command not found$|\b(?:program|executable) (?:[`'\x22]?[\w.+-]+[`'\x22]? )?(?:was |is |could )?not (?:be )?found\b|\bnot found (?:in|on) (?:your |the )?\$?PATH\b|program is available in your PATH|`?[\w.-]+`? not found\. (?:is it installed|please install|check your PATH)|(?:please|must|need to) install (?:the )?`?\w[\w.-]*`? (?:first|before|and (?:make|try|ensure))|(?:is|are) (?:not installed|not found in (?:your |the )?\$?PATH|not (?:on|in) (?:your |the )?\$?PATH|missing from (?:your )?PATH)|\b(?:which|type): no \S+ in \(|^\W*(?:(?:error|fatal|warning)(?:\[\w+\])?: |[\w.-]+: (?:error: )?)?[`'\x22]?[\w.+/-]+[`'\x22]? (?:(?:was|is|could) )?not (?:be )?found\b.{0,80}\b(?:select a different|(?:or|and|please|to|must|first|can) (?:re-?)?install\b|apt(?:-get)? install|brew install|dnf install)|\brequired,? but (?:it )?(?:is |was |could )?(?:not|n't) (?:be )?(?:installed|found)\b|(?:cannot|can't|could not|couldn't|unable to|failed to) (?:find|locate) (?:\S+ ){0,3}(?:executable|program|binary|interpreter)\b|\bmake sure .{0,60}\b(?:executables?|programs?|binar(?:y|ies)|commands?|installed)\b.{0,60}\bPATH\b|\bno (?:interpreter|compiler|toolchain)s? (?:was |were )?found\b|required (?:tool|program|executable|binary|command)s? .*(?:not found|missing)|missing (?:required )?(?:tool|program|executable|binary|command)s?:? ",
        )
        .at(FEEDBACK),
        rule(
            "tool.agent",
            r"(?i)native binary not found|Cannot find module '/\S*/(?:cli|index|bin)\S*'",
        )
        .at(AGENT),
    ],
);

pub(super) const REFUSED_BY_SERVER: &[Rule] = &table(
    FEEDBACK,
    UNAUTHORIZED,
    [
        rule(
            "refused.certificate",
            r"(?i)\bcertificate verif(?:y|ication) failed|\bcertificate problem: |\bself[- ]?signed\b.{0,20}\bcert|\bSELF_SIGNED_CERT|\bunable to (?:get local issuer|verify the first) certificate|\bUNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT\w*)|\bcertificate (?:is |was |has )?(?:not trusted|untrusted|expired|been revoked|not yet valid|signed by (?:an )?unknown authority)|\bcertificate of \W?\S+ (?:is not trusted|doesn't have a known issuer|has expired)|\bcannot verify \S+ certificate|\b(?:CERT_(?:HAS_EXPIRED|NOT_YET_VALID|UNTRUSTED)|ERR_TLS_CERT_ALTNAME_INVALID)\b|\binvalid peer certificate\b|\bx509: (?:certificate|cannot validate)|\bPKIX path (?:building|validation) failed|\bcurl: \(60\)|\bproblem confirming the ssl certificate\b|\bcertificate subject name\b.{0,80}\bdoes not match\b",
        )
        .means(LIMIT),
        // What such tools say in no other case.
        rule(
            "refused.tool",
            r"\bnpm (?:error|ERR!) code E(?:401|403|NEEDAUTH)\b|\bERR_PNPM_FETCH_40[13]\b|fatal: Authentication failed for|could not read (?:Username|Password) for|HTTP Basic: Access denied|remote: Permission to .* denied|unable to access 'https?://.*: The requested URL returned error: 40[13]\b|\bcurl: \(22\) .* 40[13]\b|^HTTP error 40[13] while getting |\bHTTP status client error \(40[13]\b",
        ),
        rule(
            "refused.status",
            r"(?i)\b40[13]\W{1,4}(?:client error\W{1,3})?(?:unauthori[sz]ed|forbidden|access denied)\b|\b(?:unauthori[sz]ed|forbidden)\W{1,3}40[13]\b|\b(?:HTTP(?:/\d(?:\.\d)?)?|status(?: ?code)?|response(?: code| status)?|(?:server )?returned(?: error| an?)?|error code|got|code|error)\W{0,3}(?:code |error |status )?40[13](?:$|[.,;:)\]\x22'`]|\s+(?:$|-|\(|for|from|while|when|getting|fetching|on|at|url|credentials)\b)",
        )
        .at(BUILD),
        rule(
            "refused.login",
            r"(?i)\bauth(?:entication|orization)? (?:(?:has|is|was) )?(?:failed|failure|required|needed)\b|\b(?:requires?|needs?) (?:\S+ ){0,2}auth(?:$|[ .,;:])|\b(?:requires?|needs?|must|provide|supply|lack(?:s|ing)?(?: of)?|invalid|bad|wrong|incorrect|missing|expired) (?:\S+ ){0,2}(?:credentials?\b|authentication\b|authorization\b|api[ -]?key\b|access key\b|(?:access|auth\w*|api|security|bearer|session|deploy) token\b|password\b)|\bno (?:(?:basic|valid|usable|stored|matching|auth\w*) ){0,2}credentials\b|\b(?:unable to|could not|couldn't|cannot|can't|failed to) (?:locate|find|load|get|obtain|retrieve) (?:\S+ ){0,3}credentials\b|^(?:\S+: |error\W+)*(?:denied|unauthori[sz]ed|not authori[sz]ed)(?:: |\W*$)|\(unauthori[sz]ed\)|\bfrom server \(Forbidden\)|\bno token found\b|\blogin (?:incorrect|failed)\b|\b(?:access|permission) denied for (?:user|role)\b|\b(?:must|need to|have to) be logged in\b|\bnot (?:currently )?logged in\b|\b(?:please|must|need to|have to) (?:first )?(?:run:? )?\W?(?:[\w-]+ ){0,2}(?:log ?in|sign in|authenticate)\b|\btoken (?:\S+ )?(?:has |is |was )?(?:expired|invalid|revoked|rejected)\b|\b(?:AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|NoCredentials|AuthenticationFailed)(?:Error|Exception)?\b|\bNOAUTH\b|\bWRONGPASS\b",
        )
        .at(BUILD),
    ],
);

pub(super) const NO_CONNECTION: &[Rule] = &table(
    FEEDBACK,
    NETWORK,
    [
        rule(
            "network.name",
            r"(?i)could(?: not|n't) resolve (?:host|proxy|address|hostname)|unable to resolve (?:host|name)|failed to resolve (?:address|host)|failed to resolve '[\w.-]+'(?: ?[(\[:]|[.)]?$)|temporary failure (?:in name resolution|resolving)|name or service not known|nodename nor servname|no address associated with hostname|\bEAI_(?:AGAIN|NONAME|FAIL)\b|\bENOTFOUND\b|UnknownHostException|Unknown host\b|no such host\b|name resolution (?:for \S+ )?(?:failed|error)|\b(?:domain name|hostname|host name) (?:was )?not found\b|failed to lookup address|dns error|NameResolutionError|getaddrinfo (?:failed|ENOTFOUND|EAI)|Der Name oder der Dienst ist nicht bekannt|could not be resolved \(\d+: Host not found\)|NXDOMAIN",
        ),
        rule(
            "network.refused",
            r"(?:^|[:;(,\]] *|\d )(?:[Cc]onnection refused)\b|\bECONNREFUSED(?:\W*$| \S*[\d:]|[^\w\s])|\(os error 111\)|\[Errno 111\]|ConnectException|connect: connection refused|ConnectionRefused\b|actively refused|Resource temporarily unavailable \(\S+:\d+\)|Unable to load the service index for source|Verbindungsaufbau abgelehnt|Connexion refusée|Conexi(?:ó|o)n rehusada|could not connect to server|Failed to connect to \S+ port \d+|Couldn't connect to server",
        ),
        rule(
            "network.no-connection",
            r"(?i)\b(?:can't|cannot|can not|could not|couldn't|unable to|failed to) (?:connect to|reach|contact) (?:the )?(?:\S+ ){0,3}(?:server|database|host|daemon|broker|registry|endpoint|proxy|cluster)\b|\battempts? to connect to \S+ (?:has |have )?failed\b",
        ),
        rule(
            "network.unreachable",
            r"(?i:network is unreachable|no route to host|\b(?:host|server|mirror|endpoint)\b.{0,30}\b(?:unreachable|not reachable)|host is down|\bno (?:answer|response|reply) from (?:host |server )?[\w.-]+\.\w+)|\bE(?:NETUNREACH|HOSTUNREACH|NETDOWN|HOSTDOWN)\b|\(os error (?:101|113)\)|\[Errno (?:101|113)\]|Le réseau n'est pas accessible|Das Netzwerk ist nicht erreichbar|La red es inaccesible",
        ),
        rule(
            "network.reset",
            r"(?:^|[:;(,] *)[Cc]onnection (?:was )?(?:reset|closed|aborted|lost|broken)\b|\bECONN(?:RESET|ABORTED)\b|\bEPIPE\b.*(?:socket|fetch|request)|socket hang up|(?i:remote end hung up|early EOF|unexpected (?:disconnect|EOF) while reading|RPC failed; |connection reset by peer|Recv failure|Empty reply from server|RemoteDisconnected|ConnectionResetError|ProtocolError\(|IncompleteRead|unexpected end of file .*fetch|premature (?:close\b|end of (?:chunk|message|response|stream|content))|transfer closed with)",
        ),
        rule(
            "network.timed-out",
            r"(?i)connection timed out|connect(?:ion)? timeout\b|connect timed out|\bETIMEDOUT\b|\bESOCKETTIMEDOUT\b|\bERR_SOCKET_TIMEOUT\b|network timeout at|i/o timeout\b|TLS handshake timeout|read timed out|ReadTimeoutError|ConnectTimeout(?:Error)?\b|SocketTimeoutException|Net::(?:Open|Read)Timeout|operation timed out after|curl: \(28\)|\(os error 110\)|\[Errno 110\]|context deadline exceeded \(Client|Client\.Timeout exceeded|request timed out\b|HTTP request .*timed out|Operation too slow|timed out while (?:downloading|fetching|connecting)|UND_ERR_(?:CONNECT|HEADERS|BODY)_TIMEOUT|g(?:ave|iving) up after \d+ (?:attempts|tries|retries)",
        ),
        rule(
            "network.curl",
            r"^(?:\S*curl: |.*\bcurl error |.*\bcURL error |.*\[)\(?(?:5|6|7|16|18|28|35|52|55|56|92)[\])] |curl: \((?:5|6|7|16|18|28|35|52|55|56|92)\)|curl error \d+ while downloading|class=Net \(12\)|class=Http",
        ),
        rule(
            "network.tls",
            r"(?i)SSLHandshakeException|SSL_ERROR_|SSLError\b|TLS (?:connection|handshake) (?:was )?(?:error|failed|failure|non-properly)|gnutls_handshake\(\) failed|OpenSSL SSL_(?:connect|read)",
        ),
        rule(
            "network.pip",
            r"Retrying \(Retry\(total=0|Max retries exceeded with url|Failed to establish a new connection|NewConnectionError|HTTPSConnectionPool\(|Could not fetch URL .*: (?:connection|There was a problem)",
        ),
        rule(
            "network.packages",
            r"(?i)spurious network error|network failure seems|could not (?:transfer artifact|GET 'http|HEAD 'http)|unable to load the service index|could not fetch specs from|failed to open TCP connection|could not reach host|Failed to (?:fetch|download|retrieve|connect to) (?:\S+ )?`?https?://|error sending request for url|tcp connect error|trouble with your network connection|^W: Failed to fetch|^E: Failed to fetch|^Err:\d+ |unable to connect to \S+:|cannot connect to the docker daemon|is the docker daemon running|failed to connect to the docker API|temporary error \(try again later\)|Could not connect to \S+:\d+|ERR_PNPM_(?:META_FETCH_FAIL|FETCH_\d+)|FetchError:|problem while retrieving|Unable to access '?https?://|dial (?:tcp|udp)[: ]|server misbehaving|proxyconnect tcp|net/http: |network request to \S+ failed|fetch failed$|TypeError: fetch failed|Failed to download \S+.*(?:connection|network)|ssh: connect to host|kex_exchange_identification|unable to access 'https?://|Download(?:ing)? .*failed.*(?:network|connect|connection)|network (?:error|failure|is down)\b",
        ),
        rule(
            "network.service",
            r"(?i)\b(?:HTTP(?:/\d(?:\.\d)?)?|status(?: code)?|returned error|response|error|server)\W{0,3}(?:code )?(?:429|500|502|503|504)\b(?: |$|[.,;:)])?(?:.*(?:registry|fetch|download|https?://|GET|artifact|Bad Gateway|Service Unavailable|Too Many Requests|Gateway))|(?:502 Bad Gateway|503 Service (?:Temporarily )?Unavailable|504 Gateway Time-?out|429 Too Many Requests)|returned error: (?:429|5\d\d)|npm (?:error|ERR!) code E(?:429|50[0234])|wget: server returned error: HTTP/1\.\d 5\d\d",
        ),
        // Where nothing is under test, such an answer is a download's.
        rule(
            "network.status",
            r"(?i)\b50[0234]\W{1,4}(?:server error\W{1,3})?(?:internal server error|bad gateway|service (?:temporarily )?unavailable|gateway time-?out)\b|\b(?:internal server error|bad gateway|service unavailable|gateway time-?out)\W{1,3}50[0234]\b|\b(?:HTTP(?:/\d(?:\.\d)?)?|status(?: ?code)?|response(?: code| status)?|(?:server )?returned(?: error| an?)?|error code|got)\W{0,3}(?:code |error |status )?(?:429|50[0234])(?:$|[.,;:)\]\x22'`]|\s+(?:$|-|\(|for|from|while|when|getting|fetching|on|at|url)\b)",
        )
        .at(BUILD),
    ],
);
