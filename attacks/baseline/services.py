"""
The network of a baseline: servers in processes of their own, which answer whoever connects.
"""

import os
import select
import socket
import struct

MAX_QUESTION_BYTES = 16_384


def listen(family, address):
    listening = socket.socket(family)
    listening.bind(address)
    listening.listen()
    return listening


def listen_to_datagrams(address, port=0):
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind((address, port))
    return datagrams


def serve(token, streams, names):
    """A process that answers connections with the token, and queries with "no such name"."""
    if os.fork() == 0:
        while True:
            for ready in select.select([*streams, *names], [], [])[0]:
                if ready in names:
                    query, peer = ready.recvfrom(512)
                    ready.sendto(query[:2] + b"\x81\x83" + query[4:], peer)
                else:
                    with ready.accept()[0] as connection:
                        connection.sendall(token.encode())
    for served in (*streams, *names):
        served.close()


def serve_listed(order, listed, datagrams):
    """
    A process that answers connections by the name that they ask for, and datagrams with the token.
    """
    token = order["token"].encode()
    answers = {order["unlisted_name"].encode(): token, order["listed_name"].encode(): b"listed"}
    if os.fork() == 0:
        while True:
            for ready in select.select([listed, datagrams], [], [])[0]:
                if ready is datagrams:
                    datagrams.sendto(token, datagrams.recvfrom(512)[1])
                else:
                    with listed.accept()[0] as connection:
                        connection.sendall(answer_by_name(connection, answers))
    listed.close()
    datagrams.close()


def serve_proxy(listening):
    """A process that connects to what it is asked for."""
    if os.fork() == 0:
        import naive_proxy

        naive_proxy.serve(listening)
    listening.close()


def answer_by_name(connection, answers):
    """A redirection, or the answer to the first known name; nothing to a question without any."""
    question = b""
    while len(question) < MAX_QUESTION_BYTES:
        received = connection.recv(4096)
        question += received
        place = question.partition(b"/?to=")[2].split(b" ")[0]
        if place:
            return b"HTTP/1.1 302 Found\r\nLocation: " + place + b"\r\n\r\n"
        for name, answer in answers.items():
            if name in question:
                return answer
        if not received:
            break
    return b""


def add_address(interface, address):
    """Gives an interface one more IPv4 address: RTM_NEWADDR, see rtnetlink(7)."""
    new_address, flags, local = 20, 0x0405, 2
    body = struct.pack("BBBBI", socket.AF_INET, 32, 0, 0, socket.if_nametoindex(interface))
    body += struct.pack("HH4s", 8, local, socket.inet_aton(address))
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.send(struct.pack("IHHII", 16 + len(body), new_address, flags, 1, 0) + body)
        error = -struct.unpack_from("i", netlink.recv(4096), 16)[0]
    if error != 0:
        raise OSError(error, os.strerror(error))
