"""Settings of security: TLS, SASL and access control."""

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
    """Keys and trusted certificates; each may be set for one listener by `listener.name.NAME.`."""

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
        Kind.PASSWORD, None, "The broker's private key as PEM text.", dynamic=Dynamic.PER_BROKER
    )
    ssl_keystore_certificate_chain: Secret | None = setting(
        Kind.PASSWORD, None, "The broker's certificate chain as PEM text.", dynamic=Dynamic.PER_BROKER
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
        "File with the trusted certificate authorities.",
        dynamic=Dynamic.PER_BROKER,
    )
    ssl_truststore_password: Secret | None = setting(
        Kind.PASSWORD, None, "Password of the truststore.", dynamic=Dynamic.PER_BROKER
    )
    ssl_truststore_certificates: Secret | None = setting(
        Kind.PASSWORD, None, "The trusted certificate authorities as PEM text.", dynamic=Dynamic.PER_BROKER
    )
    ssl_client_auth: str = setting(
        Kind.STRING,
        "none",
        "Whether clients must present a certificate.",
        choices=("required", "requested", "none"),
    )
    ssl_enabled_protocols: tuple[str, ...] = setting(
        Kind.LIST, ("TLSv1.2", "TLSv1.3"), "Versions of TLS.", choices=("TLSv1.2", "TLSv1.3")
    )
    ssl_cipher_suites: tuple[str, ...] = setting(
        Kind.LIST,
        (),
        "Cipher suites, by RFC name; empty: the safe ones.",
        dynamic=Dynamic.PER_BROKER,
    )
    ssl_principal_mapping_rules: str = setting(
        Kind.STRING, "DEFAULT", "Rules that map the name in a client's certificate to its principal."
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class AuthorizerSettings:
    """Settings of access control."""

    authorizer_class_name: str | None = setting(
        Kind.STRING,
        None,
        f"Turns access control on: {STANDARD_AUTHORIZER}; if empty, everything is allowed.",
        choices=(STANDARD_AUTHORIZER, ""),
    )
    super_users: str = setting(Kind.STRING, "", "Principals with all rights, separated by semicolons.")
    allow_everyone_if_no_acl_found: bool = setting(
        Kind.BOOLEAN, False, "Whether resources without an access-control entry are open to everybody."
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class AuditSettings:
    """The log of denied and of allowed operations."""

    sharecore_authorizer_cache_bytes_max: int = setting(
        Kind.LONG,
        16777216,
        "Memory for cached access-control decisions.",
        low=0,
    )
    sharecore_audit_log: str | None = setting(
        Kind.STRING,
        None,
        "Audit file, one JSON object per line and decision; if empty, decisions go to the broker's log.",
    )
    sharecore_audit_allowed: bool = setting(
        Kind.BOOLEAN, False, "Whether allowed operations are audited too."
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class HandshakeSettings:
    """What connections may take before they are established."""

    sharecore_handshake_timeout_ms: int = setting(Kind.INT, 10000, "Timeout of a TLS handshake.", low=1)
    sharecore_handshakes_max: int = setting(
        Kind.INT, 1000, "Maximum number of concurrent TLS handshakes; beyond it the oldest is aborted.", low=1
    )
    sharecore_ssl_reload_interval_ms: int = setting(
        Kind.INT, 10000, "How often keystore and truststore files are checked for changes; 0: never.", low=0
    )


@dataclass(frozen=True, kw_only=True, init=False, eq=False, repr=False)
class SaslSettings:
    """Settings of SASL; each may be set for one listener, and JAAS settings for one mechanism."""

    sasl_enabled_mechanisms: tuple[str, ...] = setting(
        Kind.LIST, ("GSSAPI",), "SASL mechanisms of a listener.", dynamic=Dynamic.PER_BROKER
    )
    sasl_jaas_config: Secret | None = setting(
        Kind.PASSWORD,
        None,
        "Login settings of a mechanism; for PLAIN: user_NAME=password for each user.",
        dynamic=Dynamic.PER_BROKER,
    )
    sasl_server_max_receive_size: int = setting(
        Kind.INT, 524288, "Maximum frame size before authentication.", low=1
    )
    connections_max_reauth_ms: int = setting(
        Kind.LONG, 0, "Clients must reauthenticate after this time; 0: never."
    )
    connection_failed_authentication_delay_ms: int = setting(
        Kind.INT, 100, "How long the answer to a failed authentication is delayed.", low=0
    )
    sharecore_authentication_timeout_ms: int = setting(
        Kind.INT, 15000, "Close connections that have not authenticated after this time.", low=1
    )
    sharecore_authentications_max: int = setting(
        Kind.INT,
        1000,
        "Maximum number of concurrent authentications; beyond it the oldest connection is closed.",
        low=1,
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = setting(
        Kind.STRING, None, "URL of the token-signing keys; file:, https: or http:."
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = setting(
        Kind.LONG, 3600000, "How often the keys are fetched.", low=1
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] | None = setting(
        Kind.LIST, None, "Allowed audiences of tokens."
    )
    sasl_oauthbearer_expected_issuer: str | None = setting(Kind.STRING, None, "Required issuer of tokens.")
    sasl_oauthbearer_clock_skew_seconds: int = setting(Kind.INT, 30, "Allowed clock difference.", low=0)
    sasl_oauthbearer_sub_claim_name: str = setting(Kind.STRING, "sub", "Claim with the principal's name.")
