import json

from benchmarks import ray_faults
from placeto.distributed import ray_session


def test_what_is_killed_ends_where_what_is_left_alone_does(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(ray_faults, "RESULTS", tmp_path)
    with ray_session(None, 2):
        assert ray_faults.main(["--seconds", "5", "--every", "2"]) == 0
    assert "A worker was killed every 2 seconds." in capsys.readouterr().out
    rows = json.loads((tmp_path / "ray_faults.json").read_text())["rows"]
    assert [row["killed"]["kills"] > 0 for row in rows] == [True, True]
    assert [row["alone"]["kills"] for row in rows] == [0, 0]
    assert rows[0]["killed"]["best"] == rows[0]["alone"]["best"]
