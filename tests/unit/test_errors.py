"""Errors on their way to another process."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from sharecore.client import Record
from sharecore.client.errors import AuthenticationFailed, CorruptRecords, DeserializationError, Disconnected
from sharecore.client.producing.records import RecordsNotSent
from sharecore.errors import ConfigError, ErrorCode, KafkaError
