#include "cli/doctor_questions.h"

#include <fmt/format.h>

#include <iostream>
#include <set>

#include "base/error.h"
#include "cli/messages.h"
#include "doctor/answer/questions.h"

namespace headroom {
namespace {

constexpr int kMostQuestions = 3;

std::string without_spaces(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// The most deciding that is still open.
const doctor::Question* next_question(const doctor::Report& report, const std::set<std::string>& open, bool all) {
  for (const doctor::Question& question : report.questions)
    if ((all || question.first) && !open.count(question.option)) return &question;
  return nullptr;
}

// As if the option had been given.
bool answer_with(doctor::Request& request, const doctor::Intake& intake, doctor::Answer& answer,
                 const doctor::Question& question, const std::string& text) {
  try {
    doctor::Request known = doctor::with_answer(request, question, text);
    answer = doctor::answer(known, intake);
    request = std::move(known);
    return true;
  } catch (const Error& error) {
    print_error(error.what(), error.remedy());
    return false;
  }
}

}  // namespace

bool ask_for_facts(doctor::Request& request, const doctor::Intake& intake, doctor::Answer& answer, bool all,
                   std::istream& in) {
  if (!next_question(answer.report, {}, all)) print_note("nothing to ask: no missing fact would change the answer");
  bool changed = false;
  std::set<std::string> left_open;
  for (int asked = 0; asked < kMostQuestions; ++asked) {
    const doctor::Question* next = next_question(answer.report, left_open, all);
    if (!next) break;
    const doctor::Question question = *next;
    std::cout.flush();
    write_stderr(fmt::format("{} (such as {}; empty: not known) ", question.text, question.example));
    std::string line;
    if (!std::getline(in, line)) break;
    const std::string text = without_spaces(line);
    if (text.empty())
      left_open.insert(question.option);
    else
      changed = answer_with(request, intake, answer, question, text) || changed;
  }
  if (!left_open.empty() || changed) write_stderr("\n");
  return changed;
}

}  // namespace headroom
