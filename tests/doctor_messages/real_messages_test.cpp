// Messages in the formats of 27 kinds of programs, and 103 real ones if ../shared exists: figures are within the
// rounding of their last printed digit, nothing is invented, and the framework is right.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "../data_files/data_files.h"
#include "doctor/messages/log_filter.h"
#include "doctor/messages/log_scanner.h"

namespace headroom::doctor {
namespace {

using nlohmann::json;

struct Field {
  const char* name;
  std::optional<int64_t> Message::*member;
};
constexpr Field kFields[] = {{"requested", &Message::requested_bytes},
                             {"capacity", &Message::capacity_bytes},
                             {"allocated", &Message::allocated_bytes},
                             {"reserved", &Message::reserved_bytes},
                             {"reserved_unallocated", &Message::reserved_unallocated_bytes},
                             {"free", &Message::free_bytes},
                             {"process", &Message::process_bytes}};

std::vector<json> rows_of(const std::filesystem::path& path) {
  std::vector<json> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) rows.push_back(json::parse(line));
  return rows;
}

double tolerance_of(const json& row, const std::string& field) {
  const json tolerances = row.value("tolerance_bytes", json::object());
  return std::max(1.0, tolerances.value(field, 0.0)) * 1.01;
}

bool derived(const json& row, const std::string& field) {
  const json list = row.value("derived_fields", json::array());
  return std::find(list.begin(), list.end(), field) != list.end();
}

struct Score {
  int right = 0, wrong = 0, invented = 0;
};

void add_score(const json& row, const Message& message, Score& score, bool verbose) {
  const auto note = [&](const std::string& what) {
    if (verbose) std::cout << "  " << row["id"] << " " << row["format"] << ": " << what << "\n";
  };
  for (const Field& field : kFields) {
    const json truth = row.value(std::string(field.name) + "_bytes", json());
    const auto given = message.*field.member;
    if (truth.is_null()) {
      score.invented += given ? 1 : 0;
      if (given) note(std::string("invented ") + field.name);
    } else if (given || !derived(row, field.name)) {
      const bool good =
          given && std::abs(static_cast<double>(*given) - truth.get<double>()) <= tolerance_of(row, field.name);
      ++(good ? score.right : score.wrong);
      if (!good) note(std::string("wrong ") + field.name);
    }
  }
  const json index = row.value("device_index", json());
  if (index.is_null()) return;
  const bool good = message.device_index && *message.device_index == index.get<int>();
  ++(good ? score.right : score.wrong);
  if (!good) note("wrong device_index");
}

Message first_message(const std::string& text) {
  LogReport report = scan_log(text);
  return report.messages.empty() ? Message{} : report.messages[0];
}

class MessageSet : public testing::TestWithParam<std::filesystem::path> {
 protected:
  void SetUp() override {
    rows_ = rows_of(GetParam());
    ASSERT_GE(rows_.size(), 100u);
  }
  std::vector<json> rows_;
};

TEST_P(MessageSet, FiguresFrameworksAndPhases) {
  Score score;
  int framework = 0, phases = 0, phases_wrong = 0;
  for (const json& row : rows_) {
    const Message message = first_message(row["text"]);
    add_score(row, message, score, true);
    framework += message.framework == row["framework"];
    if (message.framework != row["framework"]) {
      std::cout << "  " << row["id"] << " is " << row["framework"] << ", read as '" << message.framework << "'\n";
    }
    if (message.phase == "unknown") continue;
    ++phases;
    phases_wrong += message.phase != row["phase"];
    if (message.phase != row["phase"])
      std::cout << "  " << row["id"] << " phase " << row["phase"] << " read as " << message.phase << "\n";
  }
  const int total = score.right + score.wrong;
  std::cout << "fields " << score.right << " of " << total << ", invented " << score.invented << ", framework "
            << framework << " of " << rows_.size() << ", phases told " << phases << "\n";
  EXPECT_GE(score.right, 0.98 * total);
  EXPECT_EQ(score.invented, 0);
  EXPECT_GE(framework, 0.95 * static_cast<double>(rows_.size()));
  EXPECT_LE(phases_wrong, 2);
}

// In a log, prefixes, colours and other lines surround a message; the log is fed in pieces of any size.
TEST_P(MessageSet, SameInsideALog) {
  Score alone, inside;
  for (const json& row : rows_) {
    add_score(row, first_message(row["text"]), alone, false);
    std::string log = "step 10 loss 2.31 lr 1e-4\nINFO: starting\n\x1b[31m";
    log += row["text"].get<std::string>() + "\x1b[0m\nCleaning up.\nbye 12 GiB of cake\n";
    LogScanner scanner;
    for (size_t at = 0; at < log.size(); at += 7) scanner.feed(std::string_view(log).substr(at, 7));
    const LogReport report = scanner.finish();
    add_score(row, report.messages.empty() ? Message{} : report.messages[0], inside, false);
  }
  EXPECT_EQ(alone.right, inside.right);
  EXPECT_EQ(inside.invented, 0);
}

// A message that a terminal wrapped at any width, even within words and numbers, reads the same as long as every figure
// keeps its unit.
TEST_P(MessageSet, WrappedByATerminal) {
  for (const size_t width : {60, 80, 100, 132}) {
    Score wrapped;
    for (const json& row : rows_) {
      if (row["framework"].get<std::string>().rfind("pytorch-", 0) != 0) continue;
      const std::string text = row["text"];
      std::string folded;
      for (size_t at = 0; at < text.size(); at += width) folded += text.substr(at, width) + "\n";
      add_score(row, first_message(folded), wrapped, false);
    }
    EXPECT_EQ(wrapped.wrong, 0) << width;
    EXPECT_EQ(wrapped.invented, 0) << width;
  }
}

// Truncated at every position: what is read is right, or nothing is reported.
TEST_P(MessageSet, CutAnywhere) {
  for (const json& row : rows_) {
    const std::string text = row["text"];
    for (size_t length = 0; length < text.size(); ++length) {
      const Message message = first_message(text.substr(0, length));
      for (const Field& field : kFields) {
        const auto given = message.*field.member;
        if (!given) continue;
        const json truth = row.value(std::string(field.name) + "_bytes", json());
        // Exact byte counts without a unit do not show that they are truncated.
        const bool bare = field.member == &Message::requested_bytes && text.find("of size") != std::string::npos;
        if (bare || text.find("/dev/shm") != std::string::npos) continue;
        ASSERT_FALSE(truth.is_null()) << row["id"] << " " << field.name << ": " << text.substr(0, length);
        EXPECT_LE(std::abs(static_cast<double>(*given) - truth.get<double>()),
                  std::max(tolerance_of(row, field.name), 2e7))
            << row["id"] << " " << field.name << ": " << text.substr(0, length);
      }
    }
  }
}

TEST_P(MessageSet, EachHasAWordOfTheFilter) {
  const WordScan filter(filter_words());
  for (const json& row : rows_) {
    EXPECT_NE(filter.tags(row["text"].get<std::string>()) & kMessage, 0u) << row["text"];
  }
}

INSTANTIATE_TEST_SUITE_P(Files, MessageSet, testing::ValuesIn(test::data_files("oom_messages.jsonl")),
                         [](const auto& param) { return test::data_file_label(param.param); });

}  // namespace
}  // namespace headroom::doctor
