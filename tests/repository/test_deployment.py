"""The image, the compose file and the systemd unit: their parts exist, and their commands run.

Where a Docker daemon answers, the image is built and the services are run by compose (slow). Else
the same commands run here: `test_the_commands_of_the_image` in this environment, and the
installation of the image in an environment of its own (slow, needs a package index).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "packaging" / "docker"
UNIT = ROOT / "packaging" / "systemd" / "truvar.service"
PAGE = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
TOKEN = "t" * 24
INSTALLED = "/opt/truvar"  # environment of the image and of the unit
PORT = "8765"


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the Dockerfile with their arguments."""
    text = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    rows = []
    for line in text.splitlines():
        if line.strip():
            name, _, argument = line.partition(" ")
            rows.append((name, argument.strip()))
    return rows


def stages() -> list[list[tuple[str, str]]]:
    """Return the instructions of each stage of the build."""
    found: list[list[tuple[str, str]]] = []
    for row in instructions():
        if row[0] == "FROM":
            found.append([])
        found[-1].append(row)
    return found


def arguments(name: str) -> list[str]:
    """Return the arguments of an instruction of the last stage."""
    return [argument for other, argument in stages()[-1] if other == name]


def compose() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    return dict(yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8")))


def unit_settings() -> dict[str, list[str]]:
    """Return the settings of the systemd unit, with all values of each."""
    settings: dict[str, list[str]] = {}
    for line in UNIT.read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            settings.setdefault(name, []).append(value)
    return settings


def docker_runs() -> bool:
    """Return whether there is a Docker daemon with compose."""
    if shutil.which("docker") is None:
        return False
    commands = (["docker", "info"], ["docker", "compose", "version"])
    return all(
        subprocess.run(command, capture_output=True, check=False).returncode == 0
        for command in commands
    )


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def fetch(url: str, token: str | None = None, timeout: float = 5.0) -> Any:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.loads(answer.read())


def image_environment(store: str) -> dict[str, str]:
    """Return the environment of the image, with the store and the token of the compose file."""
    names = re.findall(r"(\w+)=\S+", " ".join(arguments("ENV")))
    assert "TRUVAR_STORE" in names
    return {**os.environ, "TRUVAR_STORE": store, "TRUVAR_TOKEN": TOKEN}


@contextmanager
def running_image(command: list[str], environment: dict[str, str]) -> Iterator[str]:
    """Run the command of the image on another port until its health check passes."""
    port = str(free_port())
    entry = json.loads(arguments("ENTRYPOINT")[0])
    assert entry == ["truvar"]
    options = [(each == PORT and port) or each for each in json.loads(arguments("CMD")[0])]
    check_text = arguments("HEALTHCHECK")[0].partition("CMD ")[2]
    check = json.loads(check_text.replace(PORT, port))
    assert check[0] == "python"
    process = subprocess.Popen([*command, *options], env=environment, stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 90
        while subprocess.run(
            [sys.executable, *check[1:]], capture_output=True, check=False
        ).returncode:
            assert process.poll() is None, process.stderr and process.stderr.read().decode()
            assert time.monotonic() < deadline, "the health check does not pass"
            time.sleep(0.3)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)
        if process.stderr is not None:
            process.stderr.close()


def check_service(url: str, command: list[str], environment: dict[str, str]) -> None:
    """Check that tokens are needed, and that one made by a command works."""
    with pytest.raises(urllib.error.HTTPError, match="401"):
        fetch(f"{url}/api")
    assert fetch(f"{url}/api", TOKEN)["access"] == "write"
    made = subprocess.run(
        [*command, "token", "add", environment["TRUVAR_STORE"], "anna"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    time.sleep(1.5)  # the server reads the tokens every second
    assert fetch(f"{url}/api", made.stdout.split()[-1])["holder"] == "anna"


def test_the_image_is_built_from_files_that_exist_and_does_not_run_as_root():
    for name, argument in instructions():
        if name == "COPY" and not argument.startswith("--from"):
            for source in argument.split()[:-1]:
                assert (ROOT / source).exists(), source
    assert arguments("USER") == ["truvar"]
    assert arguments("EXPOSE") == [PORT]
    allowed = (DOCKER / "Dockerfile.dockerignore").read_text(encoding="utf-8")
    copied = [argument for name, argument in stages()[0] if name == "COPY"]
    for source in " ".join(copied).split():
        assert source.startswith(".") or f"!{source}\n" in allowed


def test_images_come_from_the_default_registry():
    images = [argument.split()[0] for name, argument in instructions() if name == "FROM"]
    images += [service["image"] for service in compose()["services"].values()]
    assert images
    for image in images:
        assert re.fullmatch(r"[a-z]+(:[\w.-]+)?", image), image


def test_the_compose_file_publishes_the_proxy_alone_and_waits_for_health():
    services = compose()["services"]
    assert set(services) == {"database", "truvar", "proxy"}
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert set(services["database"]["networks"]).isdisjoint(services["proxy"]["networks"])
    assert compose()["networks"]["inner"] == {"internal": True}
    for name, other in (("truvar", "database"), ("proxy", "truvar")):
        assert services[name]["depends_on"] == {other: {"condition": "service_healthy"}}
    assert (DOCKER / services["truvar"]["build"]["context"]).resolve() == ROOT
    assert (ROOT / services["truvar"]["build"]["dockerfile"]).is_file()
    caddyfile = (DOCKER / "Caddyfile").read_text(encoding="utf-8")
    assert f"truvar:{PORT}" in caddyfile
    assert "flush_interval -1" in caddyfile


def test_every_variable_that_must_be_set_is_in_the_example_and_no_secret_is():
    text = (DOCKER / "compose.yaml").read_text(encoding="utf-8")
    needed = set(re.findall(r"\$\{(\w+):\?", text))
    example = dict(
        line.split("=", 1)
        for line in (DOCKER / "example.env").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
    assert set(example) == needed
    assert example["TRUVAR_TOKEN"] == example["TRUVAR_DATABASE_PASSWORD"] == ""
    assert "/packaging/docker/.env\n" in (ROOT / ".gitignore").read_text(encoding="utf-8")


def test_the_commands_of_the_image(postgres, tmp_path):
    pytest.importorskip("fastapi", reason="needs truvar[service]")
    import psycopg

    with psycopg.connect(f"{postgres}/postgres", autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS deployed")
        connection.execute("CREATE DATABASE deployed")
    # The copied files alone: nothing else of the repository is needed.
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignored)
    environment = image_environment(f"{postgres}/deployed")
    environment["PYTHONPATH"] = str(tmp_path / "src")
    command = [sys.executable, "-m", "truvar"]
    with running_image(command, environment) as url:
        check_service(url, command, environment)


def test_the_image_without_a_token_says_what_is_missing(tmp_path):
    environment = image_environment(f"sqlite:///{tmp_path / 'studies.db'}")
    del environment["TRUVAR_TOKEN"]
    command = [sys.executable, "-m", "truvar", *json.loads(arguments("CMD")[0])]
    run = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 1
    assert "which needs a token, got none" in run.stderr


@pytest.mark.slow
def test_the_installation_of_the_image(tmp_path):
    """The RUN instructions of the first stage, in a folder of its own; needs a package index."""
    source = tmp_path / "source"
    source.mkdir()
    installed = tmp_path / "installed"
    for name, argument in stages()[0]:
        if name == "COPY":
            *sources, target = argument.split()
            for each in sources:
                copy = shutil.copytree if (ROOT / each).is_dir() else shutil.copy
                copy(ROOT / each, source / target / (each if target == "./" else ""))
        if name == "RUN":
            command = argument.replace(INSTALLED, str(installed))
            command = re.sub(r"^python ", f"{sys.executable} ", command)
            environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
            run = subprocess.run(
                command,
                shell=True,
                cwd=source,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if "NewConnectionError" in run.stderr:
                pytest.skip("needs a package index")
            assert run.returncode == 0, run.stderr
    environment = image_environment(f"sqlite:///{tmp_path / 'studies.db'}")
    environment.pop("PYTHONPATH", None)
    command = [str(installed / "bin" / "truvar")]
    with running_image(command, environment) as url:
        check_service(url, command, environment)


@pytest.mark.slow
def test_the_services_run_by_compose(tmp_path):
    if not docker_runs():
        pytest.skip("needs a Docker daemon with compose")
    settings = tmp_path / "test.env"
    settings.write_text(
        f"TRUVAR_HOST=localhost\nTRUVAR_TOKEN={TOKEN}\nTRUVAR_DATABASE_PASSWORD=secret\n"
    )
    name = f"truvar-test-{os.getpid()}"
    command = ["docker", "compose", "--project-name", name, "--env-file", str(settings)]
    command += ["--file", str(DOCKER / "compose.yaml")]
    try:
        subprocess.run([*command, "up", "--build", "--detach", "--wait"], check=True, timeout=1200)
        run = subprocess.run(
            [*command, "exec", "-T", "truvar", "sh", "-c", 'truvar token add "$TRUVAR_STORE" anna'],
            capture_output=True,
            text=True,
            check=True,
        )
        import ssl

        context = ssl._create_unverified_context()  # the certificate is the proxy's own
        request = urllib.request.Request("https://localhost/api")
        request.add_header("Authorization", f"Bearer {run.stdout.split()[-1]}")
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            assert json.loads(answer.read())["holder"] == "anna"
    finally:
        subprocess.run([*command, "down", "--volumes"], check=False)


def test_the_proxy_has_a_valid_configuration(tmp_path):
    caddy = shutil.which("caddy")
    if caddy is None:
        pytest.skip("needs caddy")
    command = [caddy, "validate", "--adapter", "caddyfile", "--config", str(DOCKER / "Caddyfile")]
    # Caddy makes keys for localhost while it validates: they must not outlive the test.
    folders = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), str(tmp_path))
    environment = {**os.environ, **folders, "TRUVAR_HOST": "localhost"}
    subprocess.run(command, env=environment, check=True, capture_output=True)


def test_the_unit_runs_the_command_of_the_image_on_loopback():
    settings = unit_settings()
    (start,) = settings["ExecStart"]
    assert start == f"{INSTALLED}/bin/truvar serve --host 127.0.0.1 --port {PORT}"
    assert "MemoryDenyWriteExecute" not in settings
    assert settings["EnvironmentFile"][0] in PAGE


def test_systemd_accepts_the_unit(tmp_path):
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("needs systemd-analyze")
    path = tmp_path / UNIT.name
    # What is started must exist.
    text = UNIT.read_text(encoding="utf-8").replace(f"{INSTALLED}/bin/truvar", sys.executable)
    path.write_text(text)
    run = subprocess.run([tool, "verify", str(path)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_the_page_names_the_files_and_commands_that_exist():
    for path in re.findall(r"packaging/[\w./-]+\w", PAGE):
        if not path.endswith(".env") or path.endswith("example.env"):
            assert (ROOT / path).exists(), path
    for variable in ("TRUVAR_HOST", "TRUVAR_TOKEN", "TRUVAR_DATABASE_PASSWORD", "TRUVAR_STORE"):
        assert variable in PAGE
