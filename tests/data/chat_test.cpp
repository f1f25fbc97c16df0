// Rows of {"messages"}: ids and labels as computed by jinja2 and Python, and refusals.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "../data_files/data_files.h"
#include "../formats/expect_error.h"
#include "../formats/temporary_directory.h"
#include "data/chat_renderer.h"
#include "data/token_cache_builder.h"
#include "formats/json.h"

namespace headroom {
namespace {

using OrderedJson = nlohmann::ordered_json;

class Chat : public testing::Test {
 protected:
  // Builds the cache of one file with these rows.
  DataCounts build(const std::string& rows) {
    options_.files = {directory_.write("d.jsonl", rows)};
    options_.vocab_size = tokenizer_.vocab_size();
    options_.tokenizer_folder = directory_.path();
    return build_token_cache(options_, &tokenizer_, directory_ / "cache");
  }
  void config(const OrderedJson& json) { directory_.write("tokenizer_config.json", json.dump()); }
  void refused(const std::string& row, const std::string& message, ErrorKind kind = ErrorKind::format) {
    SCOPED_TRACE(row);
    expect_error(kind, message, [&] { build(row); });
  }
  void check(const OrderedJson& wanted) {
    build(wanted["row"].dump() + "\n");
    const TokenCache cache = TokenCache::open(directory_ / "cache");
    ASSERT_EQ(cache.sequences(), 1);
    const auto capacity = static_cast<size_t>(cache.max_seq_length());
    std::vector<int32_t> ids(capacity), labels(capacity);
    const auto length = static_cast<size_t>(cache.read(0, ids, labels).length);
    ids.resize(length);
    labels.resize(length);
    EXPECT_EQ(ids, wanted["ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(labels, wanted["labels"].get<std::vector<int32_t>>());
  }

  TemporaryDirectory directory_;
  Tokenizer tokenizer_ = Tokenizer::bytes();
  DataOptions options_;
};

constexpr const char* kPlain =
    "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{{ 'assistant:' if add_generation_prompt }}";

TEST_F(Chat, IdsAndLabelsEqualPython) {
  const OrderedJson cases = OrderedJson::parse(read_text(HEADROOM_SOURCE_DIR "/tests/data/chat_goldens.json"));
  int64_t checked = 0;
  for (const OrderedJson& group : cases) {
    const std::string name = group["tokenizer"];
    tokenizer_ = name == "bytes" ? Tokenizer::bytes() : Tokenizer::load(test::data_file("tokenizers/" + name));
    config(group["config"]);
    for (const OrderedJson& row : group["rows"]) {
      SCOPED_TRACE(name + " " + group["config"]["chat_template"].get<std::string>() + " " + row["row"].dump());
      ++checked;
      if (row.contains("error")) {
        EXPECT_THROW(build(row["row"].dump()), Error);
        continue;
      }
      const auto& labels = row["labels"];
      const bool scored = std::any_of(labels.begin() + 1, labels.end(), [](const auto& l) { return l != -100; });
      if (scored) {
        check(row);
      } else {
        refused(row["row"].dump(), "no token of the 1 rows is scored");
      }
    }
  }
  EXPECT_EQ(checked, 100);
}

TEST_F(Chat, TemplatesComeFromTheTokenizersFolder) {
  const std::string row = R"({"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}]})";
  refused(row, "tokenizer_config.json has no chat template", ErrorKind::usage);
  config({{"bos_token", "<s>"}});
  refused(row, "tokenizer_config.json has no chat template", ErrorKind::usage);
  config({{"chat_template", 5}});
  refused(row, "chat_template is not a string and has no \"default\"");
  config({{"chat_template", {{{"name", "tool_use"}, {"template", "x"}}, {{"name", "default"}, {"template", kPlain}}}}});
  EXPECT_EQ(build(row).tokens, 19);  // user:u;assistant:a;
  config({{"chat_template", "{% include 'x' %}"}});
  refused(row, "tokenizer_config.json: chat template:1: 'the tag include' is not supported");
  const uint64_t before = token_cache_key(options_, &tokenizer_);
  directory_.write("chat_template.jinja", "{{ bos_token }}" + std::string(kPlain));
  EXPECT_NE(token_cache_key(options_, &tokenizer_), before);
  EXPECT_EQ(build(row).tokens, 20);  // the tokenizer's own BOS, because the configuration does not name one
  directory_.write("chat_template.jinja", "\xff");
  refused(row, "chat_template.jinja: ");
}

// Prompts end with what precedes an answer, or with the text that an answer continues. Further variables are passed to
// the template.
TEST_F(Chat, PromptsAreForms) {
  config({{"chat_template", "{{ mode | default('plain') }}|" + std::string(kPlain)}});
  const ChatRenderer renderer(directory_.path(), tokenizer_);
  const char* const messages = R"([{"role":"user","content":"hi"},{"role":"assistant","content":" Once upon "}])";
  const auto text = [&](const PromptForm& form) { return renderer.render_prompt(messages, form, "messages"); };
  EXPECT_EQ(text({}), "plain|user:hi;assistant: Once upon ;assistant:");
  EXPECT_EQ(text({false}), "plain|user:hi;assistant: Once upon ;");
  EXPECT_EQ(text({false, true}), "plain|user:hi;assistant: Once upon ");
  EXPECT_EQ(text({true, false, {}, R"({"mode":"brief","messages_of":3})"}),
            "brief|user:hi;assistant: Once upon ;assistant:");
  expect_error(ErrorKind::format, "messages: the template's arguments are not an object", [&] {
    text({true, false, {}, "[1]"});
  });
  expect_error(ErrorKind::format, "no text to continue", [&] {
    renderer.render_prompt(R"([{"role":"assistant","content":""}])", {false, true}, "messages");
  });
}

TEST_F(Chat, RefusedPromptsNameTheirSource) {
  config({{"chat_template", "{{ raise_exception(why) }}"}});
  const ChatRenderer renderer(directory_.path(), tokenizer_);
  const std::string at = "messages: " + (directory_ / "tokenizer_config.json").string() + ": chat template:1: ";
  for (const char* why : {"never", "a reason that is longer than any text that is kept in place"}) {
    const std::string arguments = OrderedJson{{"why", why}}.dump();
    expect_error(ErrorKind::format, at + "the template refuses the conversation: " + why, [&] {
      renderer.render_prompt("[]", {true, false, {}, arguments}, "messages");
    });
  }
}

// A server renders prompts for days; their dates are those of the requests.
TEST_F(Chat, PromptsHaveThePresentTime) {
  config({{"chat_template", "{{ strftime_now('%X') }}"}});
  const ChatRenderer renderer(directory_.path(), tokenizer_);
  const auto text = [&] { return renderer.render_prompt("[]", {}, "messages"); };
  const std::string first = text();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (text() == first && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_NE(text(), first);
}

// If the template shows the last message trimmed, or not at all.
TEST_F(Chat, AnAnswerGoesOnFromWhatTheTemplateShows) {
  const char* const messages = R"([{"role":"assistant","content":" Once \n"}])";
  config({{"chat_template", "<{{ messages[0].content | trim }}>"}});
  EXPECT_EQ(ChatRenderer(directory_.path(), tokenizer_).render_prompt(messages, {false, true}, "messages"), "<Once");
  config({{"chat_template", "<{{ messages[0].content | upper }}>"}});
  const ChatRenderer upper(directory_.path(), tokenizer_);
  expect_error(ErrorKind::format, "does not show", [&] { upper.render_prompt(messages, {false, true}, "messages"); });
}

TEST_F(Chat, RefusalsNameTheRowAndTheReason) {
  config({{"chat_template", kPlain}});
  const std::string good = R"({"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}]})";
  refused(good + "\n" + R"({"messages":{}})", "d.jsonl:2: 'messages' is {}, not a list");
  refused(R"({"messages":[{"content":"a"}]})", "d.jsonl:1: messages[0] has no role");
  refused(R"({"messages":["a"]})", "d.jsonl:1: messages[0] has no role");
  refused(R"({"messages":[],"messages":[]})", "d.jsonl:1: the key 'messages' appears twice");
  refused(R"({"messages":[{"role":"user","content":123456789012345678901}]})",
          "d.jsonl:1: the conversation holds the integer 123456789012345678901 is beyond 64 bits");
  refused(good + "\n{\"text\":\"x\"}", "d.jsonl:2: a row of {text} among rows of {messages}");
  config({{"chat_template", "{{ raise_exception('never ' ~ messages[0].content) }}"}});
  refused(good, "chat template:1: the template refuses the conversation: never u");
  config({{"chat_template", "{{ messages | length }}{% for m in messages %}{{ m.content }}{% endfor %}"}});
  refused(good, "d.jsonl:1: the template renders what comes before the assistant's messages[1] differently without it");
  config({{"chat_template", std::string(kPlain) + "{{ '' if add_generation_prompt else 'end' }}"}});
  refused(
      R"({"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"},{"role":"user","content":"b"}]})",
      "d.jsonl:1: the template renders the first 2 messages differently when others follow");
}

TEST_F(Chat, LongConversationsAreCutAndEmptyOnesSkipped) {
  config({{"chat_template", kPlain}});
  options_.max_seq_length = 18;
  const std::string row = R"({"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"abcdef"},)"
                          R"({"role":"assistant","content":"z"}]})";
  const DataCounts counts = build("{\"messages\":[]}\n" + row);
  EXPECT_EQ(counts.rows, 2);
  EXPECT_EQ(counts.empty_rows, 1);
  EXPECT_EQ(counts.tokens, 18);
  EXPECT_EQ(counts.targets, 1);  // "user:u;assistant:a"
  EXPECT_EQ(counts.lost_tokens, 24 + 12 - 18);
}

TEST_F(Chat, TimeAndMemoryOfARowAreBounded) {
  config({{"chat_template", "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"}});
  refused(R"({"messages":[{"role":"user","content":"u"}]})", "more than 64000000 steps");
  config({{"chat_template", kPlain}});
  const std::string big(5 << 20, 'x');
  options_.row_limit_bytes = 16 << 20;
  refused(R"({"messages":[{"role":"user","content":")" + big + "\"}]}", "a text of more than 4194304 bytes");
}

}  // namespace
}  // namespace headroom
