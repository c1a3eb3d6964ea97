from yunikorn_actors.policies.places import ApplicationSeen, Key


class DominantShare:
    """Who uses the smallest share of the cluster, by the type of which that share is largest."""

    reads = ("used",)

    def application_key(self, app: ApplicationSeen) -> Key:
        sizes = app.capacity
        shares = (used / sizes[kind] for kind, used in app.used.items() if sizes.get(kind))
        return max(shares, default=0.0)
