// Any text: parse_graph gives a graph or Error(format). What parses prints to a fixed point; what verifies can be
// rewritten and stays valid.
#include <cstdlib>
#include <string_view>

#include "ir/blocks.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "test_ops.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void rewrite(headroom::Graph graph) {
  for (const headroom::Program& program : graph.programs) {
    headroom::block_classes(graph, program.region);
    const auto blocks = headroom::find_repeated_blocks(graph, program.region);
    headroom::set_blocks(graph, program.region, blocks);
  }
  headroom::remove_dead_nodes(graph);
  require(headroom::verify(graph).empty());
  headroom::compact(graph, headroom::UnusedPersistent::drop);
  require(headroom::verify(graph).empty());
  require(headroom::remove_dead_nodes(graph) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const headroom::Graph graph = headroom::parse_graph(text, "fuzz", headroom::test::test_op);
    const std::string printed = headroom::print(graph);
    const headroom::Graph again = headroom::parse_graph(printed, "printed", headroom::test::test_op);
    require(headroom::print(again) == printed);
    const bool sound = headroom::verify(graph).empty();
    require(headroom::verify(again).empty() == sound);
    if (sound) rewrite(graph);
  } catch (const headroom::Error& error) {
    require(error.kind() == headroom::ErrorKind::format && std::string_view(error.what()).substr(0, 5) == "fuzz:");
  }
  return 0;
}
