// Tool calls that a model writes by itself, in a text that arrives in pieces.
#include "serve/call_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom::test {
namespace {

const OrderedJson& tools() {
  static const OrderedJson kTools =
      OrderedJson::parse(R"([{"function":{"name":"f"}}, {"function":{"name":"g \"h\""}}])");
  return kTools;
}

// The result for a text in pieces of this many bytes: words, and calls as NAME(ARGUMENTS).
struct Found {
  std::string said;
  std::vector<std::string> ids;
  size_t parts = 0;
  bool called = false;
};

Found found(const std::string& text, size_t piece) {
  CallFinder finder(tools(), "call_");
  Found out;
  bool open = false;
  const auto take = [&](const std::vector<FoundPart>& parts) {
    for (const FoundPart& part : parts) {
      ++out.parts;
      if (open && (!part.call || part.call->begins())) out.said += ')', open = false;
      EXPECT_NE(part.call.has_value(), !part.text.empty());
      out.said += part.text;
      if (!part.call) continue;
      if (part.call->begins()) out.ids.push_back(part.call->id), out.said += part.call->name + "(", open = true;
      EXPECT_EQ(part.call->index + 1, static_cast<int64_t>(out.ids.size()));
      out.said += part.call->arguments;
    }
  };
  for (size_t at = 0; at < text.size(); at += piece) take(finder.push(std::string_view(text).substr(at, piece)));
  take(finder.finish());
  if (open) out.said += ')';
  out.called = finder.called();
  return out;
}

// However the text is cut.
void expect(const std::string& text, const std::string& said, bool called) {
  for (const size_t piece : {1, 2, 3, 5, 7, 11, 64, 10000}) {
    const Found one = found(text, piece);
    EXPECT_EQ(one.said, said) << text << " in pieces of " << piece;
    EXPECT_EQ(one.called, called) << text << " in pieces of " << piece;
  }
}

TEST(CallFinders, FindMarkedCallsBehindWords) {
  expect("Let me see. \n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"}<tool_call>\"}}\n</tool_call>",
         "Let me see.f({\"a\": \"}<tool_call>\"})", true);
  expect(
      "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"type\":\"function\",\"name\":\"g "
      "\\\"h\\\"\",\"parameters\":{\"b\":[{}]},\"x\":{}}</tool_call>\n",
      "f({})g \"h\"({\"b\":[{}]})", true);
}

TEST(CallFinders, FindABareObjectThatIsTheFirstThing) {
  expect("\n {\"name\": \"f\", \"parameters\": { \"a\": 1 } }\n", "f({ \"a\": 1 })", true);
  expect("See {\"name\": \"f\", \"parameters\": {}}", "See {\"name\": \"f\", \"parameters\": {}}", false);
}

TEST(CallFinders, FindACallWhoseNameComesLast) {
  expect("{\"arguments\": {\"a\": 1}, \"name\": \"f\"}", "f({\"a\":1})", true);
  expect("a <tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"f\"}</tool_call>", "af({\"a\":1})", true);
}

TEST(CallFinders, LeaveTheRestAsItIs) {
  for (const std::string text :
       {"", " \n", "a < b, a <tool", "<tool_call>", "<tool_call>no</tool_call>", "a <tool_call> <tool_call> b\n",
        "{\"name\": \"unknown\", \"arguments\": {\"a\": 1}} ", "{\"name\": \"f\", \"arguments\": [1]}", "{}",
        "{\"name\": \"f\"}", "{\"name\": {\"name\": \"f\"}, \"arguments\": {}}",
        "{\"name\": [\"f\", 1],\"arguments\": {}}", "{\"a\": {\"name\": \"f\", \"arguments\": {}}}",
        "[{\"name\": \"f\", \"arguments\": {}}]", "{hello", "{{\"name\": \"f\", \"arguments\": {}}}"})
    expect(text, text, false);
}

// Text after a call is not lost; a second object that is not a call is text.
TEST(CallFinders, WordsMayFollowACall) {
  const std::string call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
  expect(call + "\n Done. ", "f({})Done. ", true);
  expect(call + " <tool_call>{\"name\":\"x\"}</tool_call>", "f({})<tool_call>{\"name\":\"x\"}</tool_call>", true);
  expect("{\"name\":\"f\",\"arguments\":{}}; {}", "f({}); {}", true);
}

TEST(CallFinders, ACallThatIsCutIsNoWholeCall) {
  expect("<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": {}", "f({\"a\": {})", false);
  // The model forgot the end mark, or was cut off after the arguments.
  expect("<tool_call>{\"name\":\"f\",\"arguments\":{}", "f({})", true);
  expect("<tool_call>{\"name\":\"f\",\"arguments\":{}}<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}",
         "f({})f({\"a\":1})", true);
}

TEST(CallFinders, GiveOnWhatIsCertainAtOnce) {
  CallFinder finder(tools(), "call_");
  EXPECT_EQ(finder.push("Let me ")[0].text, "Let me");
  EXPECT_EQ(finder.push("see<")[0].text, " see");
  EXPECT_TRUE(finder.push("tool_call>{\"name\":\"f\",\"arguments\":").empty());
  const std::vector<FoundPart> begun = finder.push("{\"a\":");
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].call->id, "call_0");
  EXPECT_EQ(begun[0].call->name, "f");
  EXPECT_EQ(begun[0].call->arguments, "{\"a\":");
  EXPECT_FALSE(finder.called());
  EXPECT_EQ(finder.push("12")[0].call->arguments, "12");
  EXPECT_EQ(finder.push("}}</tool_call>")[0].call->arguments, "}");
  EXPECT_TRUE(finder.called());
}

TEST(CallFinders, AnObjectThatIsLongBeforeItIsACallIsText) {
  const std::string text = "{\"title\": \"" + std::string(5000, 'x') + "\", \"name\": \"f\", \"arguments\": {}}";
  expect(text, text, false);
  EXPECT_GT(found(text, 10).parts, 200u);
}

}  // namespace
}  // namespace headroom::test
