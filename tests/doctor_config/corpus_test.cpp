// All published configurations in tests/data_files/configs: each is read, each key is accounted for, and those that
// name a model say enough for an estimate.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "../data_files/data_files.h"
#include "doctor/config/config_reader.h"
#include "doctor/config/defaults.h"
#include "expect_config.h"
#include "formats/document.h"
#include "formats/file.h"

namespace headroom::doctor {
namespace {

namespace fs = std::filesystem;

fs::path corpus() { return test::data_file("configs"); }

std::vector<fs::path> corpus_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(corpus()))
    if (entry.is_regular_file() && entry.path().extension() != ".jsonl") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// The system of a folder's files; some of them are DeepSpeed's and Accelerate's.
System expected_system(const fs::path& file) {
  const std::string path = fs::relative(file, corpus()).string();
  const std::map<std::string, System> folders = {{"axolotl/", System::axolotl},
                                                 {"litgpt/", System::litgpt},
                                                 {"llamafactory/", System::llamafactory},
                                                 {"oumi/", System::oumi},
                                                 {"pythia_neox/", System::neox},
                                                 {"torchtune/", System::torchtune},
                                                 {"trl/", System::accelerate},
                                                 {"accelerate/", System::accelerate},
                                                 {"deepspeed/", System::deepspeed},
                                                 {"deepspeed_examples/", System::deepspeed},
                                                 {"hpmll/", System::deepspeed},
                                                 {"stanford_alpaca/", System::deepspeed}};
  if (file.extension() == ".json") return System::deepspeed;
  if (path.starts_with("llamafactory/accelerate")) return System::accelerate;
  return folders.at(path.substr(0, path.find('/') + 1));
}

TEST(Corpus, EveryFileIsReadAndEveryKeyAccountedFor) {
  int64_t files = 0, keys = 0, unknown = 0, unreadable = 0;
  for (const fs::path& file : corpus_files()) {
    SCOPED_TRACE(file.string());
    const ConfigReading reading = read_config_file(file);
    ++files;
    keys += reading.keys;
    unknown += static_cast<int64_t>(reading.job.keys.unknown.size());
    unreadable += static_cast<int64_t>(reading.job.keys.unreadable.size());
    expect_all_keys(reading);
    EXPECT_EQ(reading.job.system, expected_system(file));
    for (const KeyNote& note : reading.job.keys.understood) EXPECT_GT(note.origin.line, 0) << note.origin.key;
    for (const KeyNote& note : reading.job.keys.unknown) ADD_FAILURE() << "unknown key " << note.origin.key;
  }
  EXPECT_EQ(files, 217);
  EXPECT_GT(keys, 7000);
  EXPECT_EQ(unknown, 0);
  EXPECT_EQ(unreadable, 0);
}

// Counted independently of the reader: the leaves of the parsed text.
TEST(Corpus, KeysInAreKeysOut) {
  for (const fs::path& file : corpus_files()) {
    const std::string text = read_text_file(file);
    const bool json = file.extension() == ".json";
    const DocumentNode root = json ? parse_json_document(text, "f") : parse_yaml_document(text, "f");
    const auto leaves = static_cast<int64_t>(document_leaves(root).size());
    // read alone, without the files that it refers to
    const ConfigReading alone = read_config_text(file.filename().string(), text);
    EXPECT_EQ(alone.keys, leaves) << file;
    std::set<std::pair<int64_t, std::string>> places;
    for (const auto* notes :
         {&alone.job.keys.understood, &alone.job.keys.irrelevant, &alone.job.keys.unknown, &alone.job.keys.unreadable})
      for (const KeyNote& note : *notes) places.insert({note.origin.line, note.origin.key});
    EXPECT_EQ(static_cast<int64_t>(places.size()), leaves) << file;
  }
}

TEST(Corpus, ThoseThatNameAModelSayEnough) {
  int named = 0, enough = 0, unnamed = 0;
  for (const fs::path& file : corpus_files()) {
    const Job job = read_config_file(file).job;
    const bool names_none = job.system == System::deepspeed || job.system == System::accelerate;
    if (names_none) {
      ++unnamed;
      EXPECT_EQ(job.model, "") << file;
      continue;
    }
    ++named;
    const SystemDefaults defaults = job_defaults(job);
    const bool batch = job.batch.micro || defaults.micro_batch.value || job.task != Task::train;
    const bool sequence = effective_sequence(job) || defaults.sequence_rule != SequenceRule::fixed;
    const bool says_enough = !job.model.empty() && batch && sequence && effective_micro_batch(job) >= 1;
    EXPECT_TRUE(says_enough) << file;
    enough += says_enough;
  }
  EXPECT_EQ(unnamed, 49);
  EXPECT_GE(enough * 100, named * 95);
}

TEST(Corpus, ServingRowsAreRead) {
  const fs::path path = corpus() / "serving_cmdlines.jsonl";
  const std::string text = read_text_file(path);
  std::istringstream lines(text);
  std::string row;
  int read = 0;
  std::vector<std::string> refused;
  for (int64_t number = 1; std::getline(lines, row); ++number) {
    try {
      const std::vector<ConfigReading> readings = read_config_rows("serving:" + std::to_string(number), row);
      ASSERT_EQ(readings.size(), 1u);
      expect_all_keys(readings[0]);
      EXPECT_EQ(readings[0].job.task, Task::serve);
      EXPECT_TRUE(readings[0].job.keys.unknown.empty())
          << row << " unknown " << readings[0].job.keys.unknown.front().origin.key;
      ++read;
    } catch (const Error& e) {
      refused.push_back(e.what());
    }
  }
  EXPECT_EQ(read, 13);
  ASSERT_EQ(refused.size(), 1u);  // trtllm-build
  EXPECT_THAT(refused[0], testing::HasSubstr("serving:12:1"));
  EXPECT_THAT(refused[0], testing::HasSubstr("trtllm-build"));
}

}  // namespace
}  // namespace headroom::doctor
