"""Transactions of producers (KIP-98, KIP-890)."""

from __future__ import annotations

from sharecore.coordinator.transactions.coordinator import TransactionCoordinator, TransactionLimits
from sharecore.coordinator.transactions.transaction import ProducerState, Transaction, TransactionState

__all__ = ["ProducerState", "Transaction", "TransactionCoordinator", "TransactionLimits", "TransactionState"]
