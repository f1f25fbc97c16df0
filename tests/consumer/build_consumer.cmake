# cmake -DBUILD= -DPROJECT= -DWORK= -DCOMPILER= -DGENERATOR= -DBUILD_TYPE= -DFLAGS= -DVERSION= -P build_consumer.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN} ended with ${code}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
# A project must not see this source tree, only the prefix.
function(build folder name)
  file(COPY ${folder}/ DESTINATION ${WORK}/${name}/source)
  run(${CMAKE_COMMAND} -S ${WORK}/${name}/source -B ${WORK}/${name}/build -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
      -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_FLAGS=${FLAGS} -DCMAKE_PREFIX_PATH=${WORK}/prefix)
  run(${CMAKE_COMMAND} --build ${WORK}/${name}/build)
endfunction()

build(${PROJECT} consumer)
run(${WORK}/consumer/build/consumer)
string(STRIP "${output}" output)
if(NOT output STREQUAL "headroom ${VERSION}")
  message(FATAL_ERROR "the consumer printed '${output}', expected 'headroom ${VERSION}'")
endif()

# The example plans, trains a tiny model, writes with it and explains an error.
build(${EXAMPLE} example)
run(${WORK}/prefix/bin/headroom init --config ${EXAMPLE_CONFIG} --tokenizer bytes --output-dir ${WORK}/model)
run(${WORK}/example/build/train_and_write ${WORK}/model ${EXAMPLE}/train_and_write.txt ${WORK}/out)
foreach(expected "planned peak [0-9]+ of 268435456 bytes" "step 4 loss [0-9.]+"
        "[1-9][0-9]* bytes of text in [1-9][0-9]* tokens.*[1-9][0-9]* bytes of text in [1-9][0-9]* tokens" "2\\.00 GiB")
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "the example printed no '${expected}':\n${output}")
  endif()
endforeach()
if(NOT EXISTS ${WORK}/out/model.safetensors)
  message(FATAL_ERROR "the example wrote no model:\n${output}")
endif()
