"""The back office of a shop: orders, parcels, refunds, with its own rules.

No more is refunded than was paid, nothing is refunded twice, and a refund takes three days to arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from world.loop import NUMBER, TEXT, Tool, ToolFailed

Json = dict[str, Any]

TRANSFER = timedelta(days=3)


@dataclass
class Shop:
    clock: Callable[[], datetime]
    orders: dict[str, Json] = field(
        default_factory=lambda: {
            "W2041": {"id": "W2041", "customer": "ada", "item": "teapot", "paid": 38.00, "parcel": "delivered"},
            "W2057": {"id": "W2057", "customer": "ada", "item": "two mugs", "paid": 24.00, "parcel": "in customs"},
        }
    )
    refunds: dict[str, Json] = field(default_factory=dict[str, Json])

    def tools(self, *names: str) -> list[Tool]:
        """Return the tools with these names: not every agent may refund money."""
        part = {"order_id": TEXT, "amount": NUMBER}
        all_tools = [
            Tool("list_orders", "The orders of a customer.", {"customer": TEXT}, self.list_orders),
            Tool("track_parcel", "Where the parcel of an order is.", {"order_id": TEXT}, self.track_parcel),
            Tool("create_refund", "Pay back an order, or a part of it.", part, self.create_refund),
            Tool("get_refund", "The status of a refund.", {"refund_id": TEXT}, self.get_refund),
        ]
        return [tool for tool in all_tools if tool.name in names]

    def list_orders(self, customer: str) -> Json:
        theirs = [order for order in self.orders.values() if order["customer"] == customer]
        return {"success": True, "orders": theirs}

    def track_parcel(self, order_id: str) -> Json:
        return {"success": True, "order": self._order(order_id)}

    def create_refund(self, order_id: str, amount: float) -> Json:
        order = self._order(order_id)
        refunded = sum(refund["amount"] for refund in self.refunds.values() if refund["order_id"] == order_id)
        if not 0 < amount <= order["paid"] - refunded:
            raise ToolFailed(f"{order['paid'] - refunded:.2f} of {order_id} can be paid back, and not {amount:.2f}")
        id = f"rf-{701 + len(self.refunds)}"
        self.refunds[id] = {"id": id, "order_id": order_id, "amount": amount, "since": self.clock()}
        return self.get_refund(id)

    def get_refund(self, refund_id: str) -> Json:
        refund = self.refunds.get(refund_id)
        if refund is None:
            raise ToolFailed(f"there is no refund {refund_id!r}")
        status = "arrived" if self.clock() - refund["since"] >= TRANSFER else "on its way"
        return {"success": True, "refund": {**refund, "since": f"{refund['since']:%Y-%m-%d}", "status": status}}

    def _order(self, order_id: str) -> Json:
        order = self.orders.get(order_id)
        if order is None:
            raise ToolFailed(f"there is no order {order_id!r}")
        return order
