// Finds the missing facts that would change the answer, by answering with both ends of each fact's usual range.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "doctor/answer/request.h"

namespace headroom::doctor {

// Answers the same inputs for a changed request.
using Rediagnose = std::function<Diagnosis(const Request&)>;

// At most three, the most important first: facts that would change the first remedy, then facts that would change
// whether the job or a set of remedies fits. Never asks for a fact that the inputs or the request state.
std::vector<Question> deciding_questions(const Request& request, const Case& incident, const Diagnosis& diagnosis,
                                         const Rediagnose& rediagnose);

// The request with the answer in it, as if `question.option` had been given. Throws Error(usage) for a value that the
// option would not accept; the names of models and GPUs are checked only when the request is answered.
Request with_answer(Request request, const Question& question, const std::string& text);

// "2.6". Throws Error(usage) when it is not a version.
Version parse_version(const std::string& text);

}  // namespace headroom::doctor
