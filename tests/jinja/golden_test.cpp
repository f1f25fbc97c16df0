// The output equals jinja2's byte for byte (tests/jinja/make_goldens.py), and errors are errors.
#include <gtest/gtest.h>

#include <fstream>

#include "jinja/template.h"
#include "json_value.h"

namespace headroom::jinja {
namespace {

using Json = nlohmann::ordered_json;

const Json& goldens() {
  static const Json* const json = new Json(
      Json::parse(std::ifstream(std::string(HEADROOM_SOURCE_DIR) + "/tests/jinja/goldens.json"), nullptr, true, false));
  return *json;
}

// The case's variables: the shared ones and its own.
Json variables_of(const Json& group, const Json& entry) {
  Json variables = goldens()["variables"];
  if (group.contains("variables")) variables.update(group["variables"]);
  if (entry.contains("conversation")) variables["messages"] = goldens()["conversations"][entry["conversation"]];
  if (entry.contains("variables")) variables.update(entry["variables"]);
  return variables;
}

void check_case(const Template& made, const Json& group, const Json& entry) {
  Budget budget{Limits{}};
  const Value variables = value_of(budget, variables_of(group, entry));
  const std::string error = entry.value("error", "");
  try {
    const Rendered rendered = made.render(variables.dict(), golden_time(), budget);
    EXPECT_EQ(error, "") << "rendered: " << rendered.text;
    EXPECT_EQ(rendered.text, entry.value("text", ""));
    Json spans = Json::array();
    for (const auto& [begin, end] : rendered.generations) spans.push_back({begin, end});
    EXPECT_EQ(spans, entry.value("generations", Json::array()));
  } catch (const Refusal& refusal) {
    EXPECT_EQ(error, "raised") << refusal.what();
    EXPECT_EQ(refusal.said(), entry.value("said", ""));
  } catch (const Error& e) {
    EXPECT_EQ(error, "failed") << e.what();
    EXPECT_EQ(std::string(e.what()).find("not supported"), std::string::npos) << e.what();
  }
}

TEST(Goldens, EqualJinja2) {
  const auto now = golden_time();
  ASSERT_EQ(now.tm_mday, goldens()["day"].get<int>());
  int64_t templates = 0, cases = 0;
  for (const Json& group : goldens()["templates"]) {
    SCOPED_TRACE(group["name"].get<std::string>());
    ++templates;
    try {
      const Template made = Template::parse(group["template"].get<std::string>(), group["name"].get<std::string>());
      for (const Json& entry : group["cases"]) {
        SCOPED_TRACE(entry.dump().substr(0, 200));
        check_case(made, group, entry);
        ++cases;
      }
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
  EXPECT_GE(templates, 60);
  EXPECT_GE(cases, 400);
}

}  // namespace
}  // namespace headroom::jinja
