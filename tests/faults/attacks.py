"""What has been tried against gpumon, and the tests that show the outcome. docs/reliability.md is generated
from these lists; a test checks that every one of the tests exists."""

from __future__ import annotations

from typing import NamedTuple

FAULTS_AT = "tests/faults"
DAEMON = "tests/integration/daemon"
UNIT = "tests/unit"


class Tried(NamedTuple):
    what: str
    tests: tuple[str, ...]
    """Files, or single tests in them (``file::test``)."""


FAULTS = (
    Tried("kill -9 of trainers and of the reader, under load", (f"{FAULTS_AT}/test_kills.py",)),
    Tried(
        "no descriptors left (EMFILE)",
        (f"{FAULTS_AT}/test_files.py::test_without_descriptors_nothing_is_forgotten_or_read_twice",),
    ),
    Tried(
        "reads that fail (EIO), for a while or for good",
        (
            f"{FAULTS_AT}/test_files.py::test_a_read_that_fails_for_a_while_costs_nothing",
            f"{FAULTS_AT}/test_files.py::test_a_read_that_always_fails_costs_that_ring_alone",
        ),
    ),
    Tried("a full disk (ENOSPC)", (f"{FAULTS_AT}/test_files.py::test_a_full_disk_is_waited_out",)),
    Tried("no memory left (RLIMIT_AS)", (f"{FAULTS_AT}/test_memory.py",)),
    Tried(
        "SIGSTOP of the reader, and of a trainer",
        (
            f"{FAULTS_AT}/test_files.py::test_a_reader_that_was_stopped_doubts_nothing",
            f"{FAULTS_AT}/test_files.py::test_a_stopped_trainer_is_alive",
        ),
    ),
    Tried("200 runs at once", (f"{FAULTS_AT}/test_crowds.py::test_two_hundred_runs_at_once",)),
    Tried("a history corrupted in 100 random ways", (f"{FAULTS_AT}/test_store_corrupt.py",)),
    Tried(
        "the clock set by 40 days, forwards and backwards, and back",
        (f"{FAULTS_AT}/test_clock.py", f"{FAULTS_AT}/test_clock_store.py"),
    ),
)

ATTACKS = (
    Tried(
        "a bad ring hides everybody's runs",
        (
            f"{FAULTS_AT}/test_owners.py::test_a_bad_ring_hides_nobody",
            f"{FAULTS_AT}/test_owners.py::test_a_run_that_cannot_be_made_is_counted_and_the_others_go_on",
            f"{FAULTS_AT}/test_owners.py::test_a_ring_that_brings_out_a_mistake_is_let_go_of",
            f"{FAULTS_AT}/test_crowds.py::test_mutated_rings_hide_nobody",
            f"{FAULTS_AT}/test_crowds.py::test_mutated_rings_hide_nobody_from_a_daemon",
            f"{UNIT}/runs/test_fuzz.py",
        ),
    ),
    Tried(
        "a failing rule, or a run that cannot be judged, hides all findings", (f"{FAULTS_AT}/test_rules.py",)
    ),
    Tried(
        "a ring is followed several times after a failed listing; descriptors run out",
        (
            f"{FAULTS_AT}/test_files.py::test_without_descriptors_nothing_is_forgotten_or_read_twice",
            f"{DAEMON}/test_crowds_of_clients.py::test_without_descriptors_it_says_so_once_and_comes_back",
            f"{DAEMON}/test_crowds_of_clients.py::test_it_may_open_as_many_files_as_it_is_allowed",
        ),
    ),
    Tried(
        'honest steps are called "in the future"',
        (
            f"{FAULTS_AT}/test_clock.py",
            f"{FAULTS_AT}/test_files.py::test_a_reader_that_was_stopped_doubts_nothing",
        ),
    ),
    Tried("another user keeps the daemon from starting", (f"{DAEMON}/test_start_beside_others.py",)),
    Tried(
        "another user's run takes an id, or rewrites history",
        (
            f"{FAULTS_AT}/test_owners.py::test_an_id_belongs_to_its_owner",
            f"{FAULTS_AT}/test_owners.py::test_history_is_not_rewritten_after_the_end",
            f"{UNIT}/store/test_owners.py",
        ),
    ),
    Tried(
        "churn of runs",
        (
            f"{FAULTS_AT}/test_owners.py::test_ended_runs_of_one_do_not_push_out_those_of_another",
            f"{FAULTS_AT}/test_owners.py::test_who_has_most_rings_gives_way",
        ),
    ),
    Tried(
        "names crowd out a live run",
        (
            f"{FAULTS_AT}/test_owners.py::test_names_do_not_crowd_out_a_live_run",
            f"{FAULTS_AT}/test_owners.py::test_a_folder_larger_than_a_slice_is_listed_in_the_end",
        ),
    ),
    Tried(
        "one user's runs crowd out another's series",
        (f"{UNIT}/web/test_metrics.py::test_who_has_most_runs_is_left_out_first",),
    ),
    Tried(
        "secrets, commands and source lines shown to everybody",
        (
            f"{DAEMON}/test_privacy.py",
            f"{UNIT}/web/test_privacy.py",
            f"{UNIT}/sdk/test_redact.py",
            f"{UNIT}/store/test_owners.py::test_history_is_for_its_owner_alone",
        ),
    ),
    Tried(
        "wrong logins lock out right ones; user names told apart by the clock",
        (
            f"{UNIT}/web/test_login.py",
            f"{DAEMON}/test_web_config.py::test_wrong_logins_of_one_user_do_not_lock_out_another",
        ),
    ),
    Tried(
        "silent streams, slow requests and crowds of clients",
        (f"{DAEMON}/test_crowds_of_clients.py", f"{UNIT}/web/test_client_limits.py"),
    ),
    Tried(
        "an open port without password or TLS",
        (f"{DAEMON}/test_web_config.py::test_an_open_door_is_said_loudly",),
    ),
    Tried(
        "`Host: localhost:10835@evil.com`, and other foreign names",
        (
            f"{DAEMON}/test_crowds_of_clients.py::test_a_host_that_is_not_one_of_ours_is_refused",
            f"{UNIT}/web/test_guard.py",
        ),
    ),
    Tried("asking (GET) writes into the ledger", (f"{DAEMON}/test_compare_writes.py",)),
    Tried("the clock is set for a minute and history expires", (f"{FAULTS_AT}/test_clock_store.py",)),
    Tried("one user floods the store", (f"{FAULTS_AT}/test_flood.py", f"{UNIT}/store/test_spending.py")),
)
