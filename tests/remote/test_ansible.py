"""Ansible inventories; the expectations of the precedence tests are what `ansible-inventory --list` documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wholestack.errors import InputError
from wholestack.remote.ansible import read_ini, read_yaml
from wholestack.remote.host import Host

INI = """\
# a cluster
login1 ansible_host=10.0.0.1 ansible_port=2222

[h100]
gpu[001:003] ansible_user=trainer
gpu010 ansible_host="10.0.1.10"  # replaced last week

[a100]
old[1:2].example.org:2200

[cluster:children]
h100
a100

[cluster:vars]
ansible_user = root
ansible_ssh_private_key_file='~/.ssh/cluster key'
ansible_ssh_common_args='-o StrictHostKeyChecking=yes -J admin@login1'

[all:vars]
ansible_user=nobody
"""

YAML = """\
all:
  vars:
    ansible_user: nobody
  hosts:
    login1:
      ansible_host: 10.0.0.1
      ansible_port: 2222
  children:
    cluster:
      vars:
        ansible_user: root
        ansible_ssh_private_key_file: ~/.ssh/cluster key
        ansible_ssh_common_args: -o StrictHostKeyChecking=yes -J admin@login1
        secret: !vault |
          $ANSIBLE_VAULT;1.1;AES256
      children:
        h100:
          hosts:
            gpu[001:003]:
              ansible_user: trainer
            gpu010: {ansible_host: 10.0.1.10}
        a100:
          hosts:
            old[1:2].example.org:2200:
"""

INSIDE = {"jump": "admin@login1", "identity": "~/.ssh/cluster key"}
EXPECTED = (
    Host(name="login1", address="10.0.0.1", port=2222, user="nobody"),
    *(Host(name=f"gpu00{n}", user="trainer", kind="h100", **INSIDE) for n in (1, 2, 3)),
    Host(name="gpu010", address="10.0.1.10", user="root", kind="h100", **INSIDE),
    *(Host(name=f"old{n}.example.org", port=2200, user="root", kind="a100", **INSIDE) for n in (1, 2)),
)


def test_an_ini_inventory_is_read():
    assert read_ini(INI, where="hosts") == EXPECTED


def test_the_same_in_yaml_is_the_same():
    assert read_yaml(YAML, where="hosts.yml") == EXPECTED


def test_one_name_a_line_is_an_inventory():
    hosts = read_ini("gpu1\n\nroot@gpu2:22\n; no\n# no\ngpu[3:4]\n", where="names")
    assert [host.name for host in hosts] == ["gpu1", "gpu2", "gpu3", "gpu4"]
    assert (hosts[1].user, hosts[1].port) == ("root", 22)


def test_the_nearer_group_wins_and_the_host_itself_most():
    text = """
[outer:children]
middle
[middle:children]
inner
[inner]
a
b ansible_user=own
[zebra]
a
[inner:vars]
ansible_user=inner
[middle:vars]
ansible_user=middle
ansible_port=2
[outer:vars]
ansible_user=outer
ansible_port=1
[zebra:vars]
ansible_port=9
"""
    a, b = read_ini(text, where="x")
    assert (a.user, a.port, b.user, b.port) == ("inner", 2, "own", 2)


def test_groups_of_one_depth_count_by_name():
    text = "[b]\nh\n[a]\nh\n[a:vars]\nansible_user=a\n[b:vars]\nansible_user=b\n"
    assert read_ini(text, where="x")[0].user == "b"


def test_the_kind_is_the_variable_or_the_first_group_that_names_the_host():
    text = "[rack1]\ng1\ng2 wholestack_kind=b200\n[h100]\ng1\n[free:vars]\nwholestack_kind=x\n[free]\ng3\n"
    assert [host.kind for host in read_ini(text, where="x")] == ["rack1", "b200", "x"]
    assert read_ini("[all]\ng1\n", where="x")[0].kind == "default"


@pytest.mark.parametrize(
    ("arguments", "jump"),
    [
        ("-J bastion", "bastion"),
        ("-o ProxyJump=me@bastion:2222", "me@bastion:2222"),
        ("-oProxyJump=bastion", "bastion"),
        ("-o 'ProxyCommand=ssh -W %h:%p -q me@bastion'", "me@bastion"),
        ('-o ProxyCommand="ssh -p 2222 -l me -i /k -W %h:%p bastion"', "me@bastion:2222"),
        ("-o StrictHostKeyChecking=no", None),
        ("", None),
    ],
)
def test_the_jump_host_is_found_in_arguments_for_ssh(arguments, jump):
    text = f"all:\n  hosts:\n    g:\n      ansible_ssh_common_args: {arguments!r}\n"
    assert read_yaml(text, where="x")[0].jump == jump


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[h100]\na\n[nodes", "x:3"),
        ("a b\n", "x:1: 'b' is not key=value"),
        ("a\nb 'c=d\n", "x:2"),
        ("[g:vars]\nuser\n", "x:2: 'user' is not key=value"),
        ("a ansible_port=ssh\n", "x: host a: the port is 'ssh'"),
        ("a ansible_port=70000\n", "x: host a: the port is '70000'"),
        ("a ansible_host={{ ip }}\n", "x:1: 'ip' is not key=value"),
        ('a ansible_host="{{ ip }}"\n', "ansible_host is a template"),
        ("a[1:900000]\n", "x:1"),
        ("-oProxyCommand=evil\n", "x:1"),
        ("[a:children]\nb\n[b:children]\na\n", "contain each other"),
        ("a ansible_ssh_common_args='-o ProxyCommand=nc'\n", "wholestack_jump"),
    ],
)
def test_what_is_wrong_in_ini_is_named(text, says):
    with pytest.raises(InputError) as caught:
        read_ini(text, where="x")
    assert says in str(caught.value)
    assert str(caught.value).startswith("x:")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("all: [", "x:1"),
        ("all:\n  hosts:\n    a:\n  hosts:\n    b:\n", "'hosts' is given twice"),
        ("- a\n", "x: expected a mapping, got list"),
        ("all:\n  host:\n    a:\n", "x: all: unknown key 'host'"),
        ("all:\n  hosts: [a]\n", "x: all.hosts: expected a mapping, got list"),
        ("all:\n  hosts:\n    a: 3\n", "x: all.hosts.a: expected a mapping, got int"),
        ("all:\n  hosts:\n    a: {ansible_host: [1]}\n", "ansible_host is a list"),
        ("a: !!python/object/apply:os.system ['true']\n", "x"),
        ("a: &a\n  children:\n    b: *a\n", "nested deeper than 50"),
    ],
)
def test_what_is_wrong_in_yaml_is_named(text, says):
    with pytest.raises(InputError) as caught:
        read_yaml(text, where="x")
    assert says in str(caught.value)


def test_a_few_lines_that_stand_for_millions_are_refused():
    lines = ["g0: &g0 {hosts: {h: }}"]
    lines += [f"g{n}: &g{n} {{children: {{a: *g{n - 1}, b: *g{n - 1}, c: *g{n - 1}}}}}" for n in range(1, 40)]
    with pytest.raises(InputError, match="more than 400,000 entries"):
        read_yaml("\n".join(lines), where="x")


def test_deep_brackets_are_refused():
    with pytest.raises(InputError, match="x"):
        read_yaml("[" * 1500, where="x")


@given(st.lists(st.sampled_from([*INI.splitlines(), "[a:children]", "a", "x=y", "[", "b[1:2]", "c:5"]), max_size=12))
def test_any_ini_is_read_or_refused(lines):
    try:
        hosts = read_ini("\n".join(lines), where="x")
    except InputError:
        return
    assert len({host.name for host in hosts}) == len(hosts)


@given(st.text(alphabet="ab:{}[]-&*! \n\t'\"#", max_size=60))
def test_any_yaml_is_read_or_refused(text):
    try:
        hosts = read_yaml(text, where="x")
    except InputError:
        return
    assert len({host.name for host in hosts}) == len(hosts)


def test_what_hosts_share_comes_from_variables():
    text = "[all]\ng1\n[r1]\ng1\n[r1:vars]\nwholestack_rack=r1\nwholestack_power=pdu 3\n"
    (host,) = read_ini(text, where="x")
    assert (host.rack, host.switch, host.power, host.lot) == ("r1", None, "pdu 3", None)
