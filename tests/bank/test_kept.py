"""What was used last is kept, and no more than fits."""

from bank.kept import Kept


def test_what_is_asked_for_stays() -> None:
    """Of many that come, those go that nobody has asked for meanwhile."""
    kept: Kept[int, str] = Kept(most=10)
    kept.put(0, "asked for again and again")
    kept.put(1, "never asked for")
    for n in range(2, 50):
        kept.put(n, "one of many")
        assert kept.get(0)
    assert kept.get(1) is None and kept.get(49) and kept.get(0) == "asked for again and again"


def test_no_more_is_kept_than_fits() -> None:
    """By the size of each; what is larger than all the room is kept alone, and another value takes the place of the old."""
    kept: Kept[int, str] = Kept(most=20, size=len)
    for n in range(100):
        kept.put(n % 30, "four")
        sizes = [len(value) for n in range(30) if (value := kept._young.get(n) or kept._old.get(n))]
        assert sum(sizes) <= 20
    kept.put(1, "larger than all of the room")
    assert kept.get(1) == "larger than all of the room"
    kept.put(1, "new")
    assert kept.get(1) == "new"
