"""SASL mechanisms of a listener."""

from __future__ import annotations

from collections.abc import Callable

from sharecore.config import SASL_MECHANISMS, BrokerConfig
from sharecore.errors import ConfigError
from sharecore.security.oauth import OAuth, TokenKeys
from sharecore.security.plain import Plain
from sharecore.security.sasl import Mechanism
from sharecore.security.scram import SCRAM_MECHANISMS, Credentials, Scram


def mechanisms_of(
    config: BrokerConfig,
    listener: str,
    credentials: Credentials,
    keys: Callable[[BrokerConfig], TokenKeys] = TokenKeys,
) -> dict[str, Mechanism]:
    """Return the mechanisms of a listener, in the order of its settings.

    Args:
        config: the broker's configuration.
        listener: the listener's name.
        credentials: the SCRAM users.
        keys: returns the token signing keys.

    Raises:
        ConfigError: an unsupported mechanism, or a missing setting.
    """
    offered: dict[str, Mechanism] = {}
    for name in config.for_listener(listener).sasl_enabled_mechanisms:
        own = config.for_listener(listener, name)
        if name in SCRAM_MECHANISMS.values():
            offered[name] = Scram(name, credentials)
        elif name == "PLAIN":
            offered[name] = Plain.of(own)
        elif name == "OAUTHBEARER":
            offered[name] = OAuth(own, keys(own))
        else:
            raise ConfigError(
                f"sasl.enabled.mechanisms={name}: not offered on listener {listener}; "
                f"allowed: {', '.join(SASL_MECHANISMS)}"
            )
    return offered
