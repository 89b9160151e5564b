"""The provider for plans that name one that this version does not know: it observes and sends nothing."""

from reconciler.incidents.progress import OrderResult
from reconciler.repair.providers.provider import Machine, Order, OrderOutcome, ProviderKind, UnknownMachine


class UnknownProvider:
    """Takes the place of a provider, so that the repair can be ended and recorded like any other."""

    def observe(self, _machine: str, /) -> Machine | UnknownMachine:
        """Return that nothing is known."""
        return UnknownMachine("this version does not know the provider")

    def act(self, _machine: str, _action_id: str, _order: Order, /) -> OrderOutcome:
        """Send nothing."""
        return OrderOutcome(OrderResult.NOT_SENT, "this version does not know the provider")

    def outcome(self, _machine: str, _action_id: str, /) -> OrderOutcome:
        """Return that nothing is known."""
        return OrderOutcome(OrderResult.UNKNOWN)


UNKNOWN = ProviderKind(
    name="unknown",
    capabilities=frozenset(),
    machine=lambda _pool, _node: None,
    connect=lambda _settings: UnknownProvider(),
)
