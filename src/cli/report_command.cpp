#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/messages.h"
#include "cli/output_file.h"
#include "report/page.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::string directory, output = "report.html";
};

// A file of the run itself is never overwritten.
void refuse_run_file(const fs::path& path, const fs::path& run) {
  for (const char* name : {"plan.json", "run.json", "memory.json", "measured.json", "process.json", "metrics.jsonl",
                           "config.json", "model.safetensors", "tokenizer.json"}) {
    std::error_code status;
    if (fs::equivalent(path, run / name, status))
      throw Error(ErrorKind::usage, fmt::format("{} belongs to the run", path.string()), "write to another file");
  }
}

int run_report(const ReportArguments& arguments) {
  const std::string page = report::page(report::read_run(arguments.directory));
  if (arguments.output == "-") {
    std::cout << page;
    return 0;
  }
  refuse_run_file(arguments.output, arguments.directory);
  write_page(arguments.output, page);
  print_note(fmt::format("wrote {}", arguments.output));
  return 0;
}

}  // namespace

Command report_command() {
  return {"report", "draw a run: memory over a step, the peak, the curves, what another budget would buy",
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
