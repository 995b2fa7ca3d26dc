"""An agent of openai-agents, with a tool and several turns, at the address and key of a gateway. Its only change from OpenAI is the client.

    python openai_agents.py BASE_URL KEY responses|chat
"""

import asyncio
import sys

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

base_url, key, api = sys.argv[1:]
client = AsyncOpenAI(base_url=base_url, api_key=key)
model = {"responses": OpenAIResponsesModel, "chat": OpenAIChatCompletionsModel}[api](model="policy", openai_client=client)


@function_tool
def bash(command: str) -> str:
    """Runs a command."""
    return f"ran {command}"


async def main() -> None:
    set_tracing_disabled(True)
    agent = Agent(name="worker", instructions="Be short.", model=model, tools=[bash])
    print((await Runner.run(agent, "Write the files.")).final_output)
    streamed = Runner.run_streamed(agent, "Write the files.")
    async for _ in streamed.stream_events():
        pass
    print(streamed.final_output)


asyncio.run(main())
