import pytest

from callwright.agent.loop.completion_check import needs_writes


@pytest.mark.parametrize(
    "task",
    [
        "fix the failing test",
        "Create a file hello.py that prints hello",
        "please rename foo to bar",
        "Can you add a test for this?",
        "I want you to refactor utils.py",
        "Run the tests and fix what fails",
        "The build is broken, repair it",
        "find the bug, then correct it",
        "let's implement the parser",
    ],
)
def test_tasks_that_ask_for_changes(task):
    assert needs_writes(task)


@pytest.mark.parametrize(
    "task",
    [
        "What does this function do?",
        "Explain how I could add a test",
        "why was this file changed?",
        "list the files",
        "run the tests",
        "Show me where the settings are read",
        "Is there a way to create a session?",
        "hello",
        "",
    ],
)
def test_tasks_that_ask_for_none(task):
    assert not needs_writes(task)
