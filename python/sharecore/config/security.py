"""Settings of who may connect: TLS, SASL, and what is allowed to whom."""

from __future__ import annotations

from dataclasses import dataclass

from sharecore.config.keys import Dynamic, Kind, setting
from sharecore.config.secret import Secret

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
LISTENER_PREFIX = "listener.name."
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_STORES = ("JKS", "PKCS12", "PEM")


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class TlsSettings:
    """Keys, certificates and whom to trust; each may be set for one listener by `listener.name.NAME.`."""

    ssl_keystore_type: str = setting(
        Kind.STRING, "JKS", "Format of the keystore.", choices=_STORES, dynamic=Dynamic.PER_BROKER
    )
    ssl_keystore_location: str | None = setting(
        Kind.STRING, None, "File with the broker's key and certificates.", dynamic=Dynamic.PER_BROKER
    )
    ssl_keystore_password: Secret | None = setting(
        Kind.PASSWORD, None, "Password of the keystore.", dynamic=Dynamic.PER_BROKER
    )
    ssl_keystore_key: Secret | None = setting(
        Kind.PASSWORD, None, "The broker's key itself, as PEM.", dynamic=Dynamic.PER_BROKER
    )
    ssl_keystore_certificate_chain: Secret | None = setting(
        Kind.PASSWORD, None, "The broker's certificates themselves, as PEM.", dynamic=Dynamic.PER_BROKER
    )
    ssl_key_password: Secret | None = setting(
        Kind.PASSWORD, None, "Password of the key in the keystore.", dynamic=Dynamic.PER_BROKER
    )
    ssl_truststore_type: str = setting(
        Kind.STRING, "JKS", "Format of the truststore.", choices=_STORES, dynamic=Dynamic.PER_BROKER
    )
    ssl_truststore_location: str | None = setting(
        Kind.STRING,
        None,
        "File with the authorities whose clients are trusted.",
        dynamic=Dynamic.PER_BROKER,
    )
    ssl_truststore_password: Secret | None = setting(
        Kind.PASSWORD, None, "Password of the truststore.", dynamic=Dynamic.PER_BROKER
    )
    ssl_truststore_certificates: Secret | None = setting(
        Kind.PASSWORD, None, "The trusted authorities themselves, as PEM.", dynamic=Dynamic.PER_BROKER
    )
    ssl_client_auth: str = setting(
        Kind.STRING,
        "none",
        "Whether clients must show a certificate.",
        choices=("required", "requested", "none"),
    )
    ssl_enabled_protocols: tuple[str, ...] = setting(
        Kind.LIST, ("TLSv1.2", "TLSv1.3"), "Versions of TLS.", choices=("TLSv1.2", "TLSv1.3")
    )
    ssl_cipher_suites: tuple[str, ...] = setting(
        Kind.LIST,
        (),
        "Cipher suites, by the names of the RFCs; those that are safe where none is named.",
        dynamic=Dynamic.PER_BROKER,
    )
    ssl_principal_mapping_rules: str = setting(
        Kind.STRING, "DEFAULT", "How the name in a client's certificate becomes the name of its principal."
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class AuthorizerSettings:
    """Whether anybody is asked what it may do."""

    authorizer_class_name: str | None = setting(
        Kind.STRING,
        None,
        f"Who decides what is allowed to whom: {STANDARD_AUTHORIZER}, or nobody when not set.",
        choices=(STANDARD_AUTHORIZER, ""),
    )
    super_users: str = setting(Kind.STRING, "", "Principals that may do everything, with semicolons between.")
    allow_everyone_if_no_acl_found: bool = setting(
        Kind.BOOLEAN, False, "Whether what no entry names is open to everybody."
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class AuditSettings:
    """The log of what was denied, and of what was allowed."""

    sharecore_authorizer_cache_bytes_max: int = setting(
        Kind.LONG,
        16777216,
        "Memory for decisions about what is allowed, which are remembered until an entry changes.",
        low=0,
    )
    sharecore_audit_log: str | None = setting(
        Kind.STRING,
        None,
        "Regular file of the audit, a line of JSON a decision; the log of the broker when not set.",
    )
    sharecore_audit_allowed: bool = setting(
        Kind.BOOLEAN, False, "Whether the file also has what was allowed."
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class HandshakeSettings:
    """What connections may take before they are established."""

    sharecore_handshake_timeout_ms: int = setting(
        Kind.INT, 10000, "A TLS handshake that takes longer is given up.", low=1
    )
    sharecore_handshakes_max: int = setting(
        Kind.INT, 1000, "TLS handshakes under way; beyond, the oldest is given up.", low=1
    )
    sharecore_ssl_reload_interval_ms: int = setting(
        Kind.INT, 10000, "How often the files of keystores and truststores are looked at; 0: never.", low=0
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class SaslSettings:
    """How clients say who they are; each may be set for one listener, and those of JAAS for a mechanism."""

    sasl_enabled_mechanisms: tuple[str, ...] = setting(
        Kind.LIST, ("GSSAPI",), "Mechanisms that a listener offers.", dynamic=Dynamic.PER_BROKER
    )
    sasl_jaas_config: Secret | None = setting(
        Kind.PASSWORD,
        None,
        "Login of a mechanism: with PLAIN, user_NAME=password for each user.",
        dynamic=Dynamic.PER_BROKER,
    )
    sasl_server_max_receive_size: int = setting(
        Kind.INT, 524288, "Largest frame of a client that has not said who it is.", low=1
    )
    connections_max_reauth_ms: int = setting(
        Kind.LONG, 0, "A client must say who it is again after so long; 0: never."
    )
    connection_failed_authentication_delay_ms: int = setting(
        Kind.INT, 100, "How long a client that was refused waits for the answer.", low=0
    )
    sharecore_authentication_timeout_ms: int = setting(
        Kind.INT, 15000, "A client that has not said who it is after so long is closed.", low=1
    )
    sharecore_authentications_max: int = setting(
        Kind.INT, 1000, "Clients that are saying who they are; beyond, the oldest is closed.", low=1
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = setting(
        Kind.STRING, None, "Where the keys are that sign tokens; file:, https: or http:."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = setting(
        Kind.LONG, 3600000, "How often those keys are fetched.", low=1
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] | None = setting(
        Kind.LIST, None, "A token must be for one of these."
    )
    sasl_oauthbearer_expected_issuer: str | None = setting(
        Kind.STRING, None, "A token must be issued by this one."
    )
    sasl_oauthbearer_clock_skew_seconds: int = setting(Kind.INT, 30, "By how much clocks may differ.", low=0)
    sasl_oauthbearer_sub_claim_name: str = setting(Kind.STRING, "sub", "The claim that names the principal.")
