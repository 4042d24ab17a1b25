"""LangGraph: wrap the chat model."""

import sys
from pathlib import Path

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import hotset


@tool
def read_file(path: str) -> str:
    """The text of a file."""
    return Path(path).read_text()


model = hotset.wrap(ChatOpenAI(model="gpt-5.5")).bind_tools([read_file])

graph = StateGraph(MessagesState)
graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", ToolNode([read_file]))
graph.add_edge(START, "model")
graph.add_conditional_edges("model", tools_condition)
graph.add_edge("tools", "model")

question = " ".join(sys.argv[1:]) or "What does README.md say?"
print(graph.compile().invoke({"messages": [("user", question)]})["messages"][-1].content)
