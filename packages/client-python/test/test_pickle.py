"""Clients are copied into other processes, as Ray and multiprocessing do it: by pickle."""

from __future__ import annotations

import pickle
import unittest

from fakes.examples import read_golden
from fakes.fake_service import FakeService, Reply

from millrace import AsyncClient, Client


class Own(Client):
    """A class of the user's."""


class PickleTest(unittest.TestCase):
    def test_a_copy_calls_the_same_service_with_the_same_key(self) -> None:
        for kind in (Client, Own):
            client = kind("http://127.0.0.1:9/prefix", "secret", timeout_s=7.0)
            copy = pickle.loads(pickle.dumps(client))
            transport = copy._transport
            self.assertIs(type(copy), kind)
            self.assertEqual((transport.url, transport.key, transport.timeout_s), ("http://127.0.0.1:9/prefix", "secret", 7.0))

    def test_a_copy_of_a_used_or_closed_client_works(self) -> None:
        with FakeService(lambda _: Reply(read_golden("policy.json"))) as service:
            client = Client(service.url)
            self.assertEqual(client.policy.get().policy_version, 4)
            client.close()
            with pickle.loads(pickle.dumps(client)) as copy:
                self.assertEqual(copy.policy.get().policy_version, 4)

    def test_an_asynchronous_client_keeps_its_number_of_threads(self) -> None:
        copy = pickle.loads(pickle.dumps(AsyncClient("http://127.0.0.1:9", threads=3)))
        self.assertEqual((copy._client._transport.url, copy._threads), ("http://127.0.0.1:9", 3))


if __name__ == "__main__":
    unittest.main()
