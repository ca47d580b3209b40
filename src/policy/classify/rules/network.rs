//! No connection: name resolution, refusal, reset, unreachable, timed out.

use super::rule::{BUILD, LINT, Rule, TEST, TYPECHECK, rule};
use crate::policy::classify::verdict::NETWORK;

const FEEDBACK: u8 = BUILD | TEST | LINT | TYPECHECK;

pub(super) const RULES: &[Rule] = &[
    rule(
        "network.name",
        FEEDBACK,
        r"(?i)could(?: not|n't) resolve (?:host|proxy|address|hostname)|unable to resolve (?:host|name)|failed to resolve (?:address|host)|failed to resolve '[\w.-]+'(?: ?[(\[:]|[.)]?$)|temporary failure (?:in name resolution|resolving)|name or service not known|nodename nor servname|no address associated with hostname|\bEAI_(?:AGAIN|NONAME|FAIL)\b|\bENOTFOUND\b|UnknownHostException|Unknown host\b|no such host\b|name resolution (?:for \S+ )?(?:failed|error)|\b(?:domain name|hostname|host name) (?:was )?not found\b|failed to lookup address|dns error|NameResolutionError|getaddrinfo (?:failed|ENOTFOUND|EAI)|Der Name oder der Dienst ist nicht bekannt|could not be resolved \(\d+: Host not found\)|NXDOMAIN",
        NETWORK,
    ),
    rule(
        "network.refused",
        FEEDBACK,
        r"(?:^|[:;(,\]] *|\d )(?:[Cc]onnection refused)\b|\bECONNREFUSED(?:\W*$| \S*[\d:]|[^\w\s])|\(os error 111\)|\[Errno 111\]|ConnectException|connect: connection refused|ConnectionRefused\b|actively refused|Resource temporarily unavailable \(\S+:\d+\)|Unable to load the service index for source|Verbindungsaufbau abgelehnt|Connexion refusée|Conexi(?:ó|o)n rehusada|could not connect to server|Failed to connect to \S+ port \d+|Couldn't connect to server",
        NETWORK,
    ),
    rule(
        "network.no-connection",
        FEEDBACK,
        r"(?i)\b(?:can't|cannot|can not|could not|couldn't|unable to|failed to) (?:connect to|reach|contact) (?:the )?(?:\S+ ){0,3}(?:server|database|host|daemon|broker|registry|endpoint|proxy|cluster)\b|\battempts? to connect to \S+ (?:has |have )?failed\b",
        NETWORK,
    ),
    rule(
        "network.unreachable",
        FEEDBACK,
        r"(?i:network is unreachable|no route to host|\b(?:host|server|mirror|endpoint)\b.{0,30}\b(?:unreachable|not reachable)|host is down|\bno (?:answer|response|reply) from (?:host |server )?[\w.-]+\.\w+)|\bE(?:NETUNREACH|HOSTUNREACH|NETDOWN|HOSTDOWN)\b|\(os error (?:101|113)\)|\[Errno (?:101|113)\]|Le réseau n'est pas accessible|Das Netzwerk ist nicht erreichbar|La red es inaccesible",
        NETWORK,
    ),
    rule(
        "network.reset",
        FEEDBACK,
        r"(?:^|[:;(,] *)[Cc]onnection (?:was )?(?:reset|closed|aborted|lost|broken)\b|\bECONN(?:RESET|ABORTED)\b|\bEPIPE\b.*(?:socket|fetch|request)|socket hang up|(?i:remote end hung up|early EOF|unexpected (?:disconnect|EOF) while reading|RPC failed; |connection reset by peer|Recv failure|Empty reply from server|RemoteDisconnected|ConnectionResetError|ProtocolError\(|IncompleteRead|unexpected end of file .*fetch|premature (?:close|end)|transfer closed with)",
        NETWORK,
    ),
    rule(
        "network.timed-out",
        FEEDBACK,
        r"(?i)connection timed out|connect(?:ion)? timeout\b|connect timed out|\bETIMEDOUT\b|\bESOCKETTIMEDOUT\b|\bERR_SOCKET_TIMEOUT\b|network timeout at|i/o timeout\b|TLS handshake timeout|read timed out|ReadTimeoutError|ConnectTimeout(?:Error)?\b|SocketTimeoutException|Net::(?:Open|Read)Timeout|operation timed out after|curl: \(28\)|\(os error 110\)|\[Errno 110\]|context deadline exceeded \(Client|Client\.Timeout exceeded|request timed out\b|HTTP request .*timed out|Operation too slow|timed out while (?:downloading|fetching|connecting)|UND_ERR_(?:CONNECT|HEADERS|BODY)_TIMEOUT|g(?:ave|iving) up after \d+ (?:attempts|tries|retries)",
        NETWORK,
    ),
    rule(
        "network.curl",
        FEEDBACK,
        r"^(?:\S*curl: |.*\bcurl error |.*\bcURL error |.*\[)\(?(?:5|6|7|16|18|28|35|52|55|56|92)[\])] |curl: \((?:5|6|7|16|18|28|35|52|55|56|92)\)|curl error \d+ while downloading|class=Net \(12\)|class=Http",
        NETWORK,
    ),
    rule(
        "network.tls",
        FEEDBACK,
        r"(?i)SSLHandshakeException|SSL_ERROR_|SSLError\b|TLS (?:connection|handshake) (?:was )?(?:error|failed|failure|non-properly)|gnutls_handshake\(\) failed|OpenSSL SSL_(?:connect|read)",
        NETWORK,
    ),
    rule(
        "network.pip",
        FEEDBACK,
        r"Retrying \(Retry\(total=0|Max retries exceeded with url|Failed to establish a new connection|NewConnectionError|HTTPSConnectionPool\(|Could not fetch URL .*: (?:connection|There was a problem)",
        NETWORK,
    ),
    rule(
        "network.packages",
        FEEDBACK,
        r"(?i)spurious network error|network failure seems|could not (?:transfer artifact|GET 'http|HEAD 'http)|unable to load the service index|could not fetch specs from|failed to open TCP connection|could not reach host|Failed to (?:fetch|download|retrieve|connect to) (?:\S+ )?`?https?://|error sending request for url|tcp connect error|trouble with your network connection|^W: Failed to fetch|^E: Failed to fetch|^Err:\d+ |unable to connect to \S+:|cannot connect to the docker daemon|is the docker daemon running|failed to connect to the docker API|temporary error \(try again later\)|Could not connect to \S+:\d+|ERR_PNPM_(?:META_FETCH_FAIL|FETCH_\d+)|FetchError:|problem while retrieving|Unable to access '?https?://|dial (?:tcp|udp)[: ]|server misbehaving|proxyconnect tcp|net/http: |network request to \S+ failed|fetch failed$|TypeError: fetch failed|Failed to download \S+.*(?:connection|network)|ssh: connect to host|kex_exchange_identification|unable to access 'https?://|Download(?:ing)? .*failed.*(?:network|connect|connection)|network (?:error|failure|is down)\b",
        NETWORK,
    ),
    rule(
        "network.service",
        FEEDBACK,
        r"(?i)\b(?:HTTP(?:/\d(?:\.\d)?)?|status(?: code)?|returned error|response|error|server)\W{0,3}(?:code )?(?:429|500|502|503|504)\b(?: |$|[.,;:)])?(?:.*(?:registry|fetch|download|https?://|GET|artifact|Bad Gateway|Service Unavailable|Too Many Requests|Gateway))|(?:502 Bad Gateway|503 Service (?:Temporarily )?Unavailable|504 Gateway Time-?out|429 Too Many Requests)|returned error: (?:429|5\d\d)|npm (?:error|ERR!) code E(?:429|50[0234])|wget: server returned error: HTTP/1\.\d 5\d\d",
        NETWORK,
    ),
    // Where nothing is under test, such an answer is a download's.
    rule(
        "network.status",
        BUILD,
        r"(?i)\b50[0234]\W{1,4}(?:server error\W{1,3})?(?:internal server error|bad gateway|service (?:temporarily )?unavailable|gateway time-?out)\b|\b(?:internal server error|bad gateway|service unavailable|gateway time-?out)\W{1,3}50[0234]\b|\b(?:HTTP(?:/\d(?:\.\d)?)?|status(?: ?code)?|response(?: code| status)?|(?:server )?returned(?: error| an?)?|error code|got)\W{0,3}(?:code |error |status )?(?:429|50[0234])(?:$|[.,;:)\]\x22'`]|\s+(?:$|-|\(|for|from|while|when|getting|fetching|on|at|url)\b)",
        NETWORK,
    ),
];
