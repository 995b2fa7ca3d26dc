"""Two agents in one episode: a seller and a buyer talk about a price. Each has a gateway of its own, so each has its own trajectory, with
every token as it was sampled, and its own reward. Both are the policy that is trained."""

from __future__ import annotations

import json
import re
import urllib.request
from typing import Optional

from millrace import Client, Gateway

COST, WORTH, ROUNDS = 40, 80, 4
SELLER = f"You sell a bicycle that cost you {COST}. Get a high price."
BUYER = f"You buy a bicycle that is worth {WORTH} to you. Get a low price."
RULES = "Make an offer as PRICE: number. Accept the last offer by repeating its number."


class Agent:
    """One side, with the conversation as this side sees it."""

    def __init__(self, gateway: Gateway, role: str) -> None:
        self.gateway = gateway
        self.messages = [{"role": "system", "content": f"{role} {RULES}"}]

    def answer(self, said: str) -> str:
        self.messages.append({"role": "user", "content": said})
        headers = {"content-type": "application/json", "authorization": f"Bearer {self.gateway.key}"}
        body = json.dumps({"model": "policy", "messages": self.messages}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{self.gateway.base_url}/chat/completions", body, headers)) as reply:
            text = str(json.load(reply)["choices"][0]["message"]["content"])
        self.messages.append({"role": "assistant", "content": text})
        return text


def negotiate(seller: Agent, buyer: Agent) -> Optional[int]:
    """The price that both named in a row, if there is one."""
    said, offers = "Hello, what do you ask for the bicycle?", []
    for turn in range(2 * ROUNDS):
        said = (seller, buyer)[turn % 2].answer(said)
        found = re.search(r"PRICE: (\d+)", said)
        offers.append(int(found[1]) if found else None)
        if len(offers) > 1 and offers[-1] is not None and offers[-1] == offers[-2]:
            return offers[-1]
    return None


def main() -> None:
    with Client() as client:
        gateways = [client.gateways.open({"group": f"{side}s", "sampling": {"max_tokens": 200}}) for side in ("seller", "buyer")]
        price = negotiate(Agent(gateways[0], SELLER), Agent(gateways[1], BUYER))
        gains = [0.0, 0.0] if price is None else [(price - COST) / (WORTH - COST), (WORTH - price) / (WORTH - COST)]
        for gateway, gain in zip(gateways, gains):
            view = client.gateways.reward(gateway.id, gain, score={"price": price})
            trajectory = client.trajectory(gateway.id)
            sampled = sum(len(one.token_ids) for one in trajectory.segments if one.kind == "sampled")
            print(view.group, view.reward, sampled)


if __name__ == "__main__":
    main()
