#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/messages.h"
#include "report/page.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::string directory, output = "report.html";
};

// The page is written whole or not at all; a file of the run itself is never overwritten.
void write_page(const std::string& page, const fs::path& path, const fs::path& run) {
  for (const char* name : {"plan.json", "run.json", "memory.json", "measured.json", "process.json", "metrics.jsonl",
                           "config.json", "model.safetensors", "tokenizer.json"}) {
    std::error_code status;
    if (fs::equivalent(path, run / name, status))
      throw Error(ErrorKind::usage, fmt::format("{} belongs to the run", path.string()), "write to another file");
  }
  std::error_code status;
  if (fs::is_directory(path, status))
    throw Error(ErrorKind::usage, fmt::format("{} is a directory", path.string()), "give -o a file: report.html");
  fs::path beside = path;
  beside += ".tmp";
  std::ofstream file(beside, std::ios::binary | std::ios::trunc);
  file << page;
  file.close();
  if (file) fs::rename(beside, path, status);
  if (!file || status) {
    std::error_code ignored;
    fs::remove(beside, ignored);
    throw Error(ErrorKind::run, fmt::format("cannot write {}", path.string()), "check the folder and the free space");
  }
}

int run_report(const ReportArguments& arguments) {
  const std::string page = report::page(report::read_run(arguments.directory));
  if (arguments.output == "-") {
    std::cout << page;
    return 0;
  }
  write_page(page, arguments.output, arguments.directory);
  print_note(fmt::format("wrote {}", arguments.output));
  return 0;
}

}  // namespace

Command report_command() {
  return {"report", "draw a run: memory over a step, the peak, the curves, what another budget would give",
          [](CLI::App& app) {
            auto arguments = std::make_shared<ReportArguments>();
            app.add_option("directory", arguments->directory, "the --output-dir of a run, finished or not")
                ->required()
                ->type_name("DIR");
            scalar(app, "-o,--output", arguments->output, "where the page goes; - is stdout")
                ->capture_default_str()
                ->type_name("FILE");
            return [arguments] { return run_report(*arguments); };
          }};
}

}  // namespace headroom
