// The part of the testkit that needs neither the server nor a client: a test that uses nothing else starts without loading them.

export { FakeClock } from '../clock/fake-clock.ts';
export {
  echoPolicy,
  fixedPolicy,
  type Policy,
  type PolicyAnswer,
  type PolicyInput,
  renderCall,
  type Script,
  scriptedPolicy,
} from '../fake-backend/policy.ts';
export { writeDockerArchive } from '../images/docker-archive.ts';
export { makePythonImage, makeTinyImage } from '../images/tiny-image.ts';
export { measureLoopBlock } from '../loop-block.ts';
export { type ModelFamily, modelFamilies, modelFolder } from '../models/model-folders.ts';
export { qwen3Folder } from '../models/qwen3.ts';
export { makeRandom } from '../models/random.ts';
export { makeTempFolder, type TempFolder } from '../temp-folder.ts';
export { type CommandLine, readCommandLines, waitUntilNoneRuns } from './command-lines.ts';
