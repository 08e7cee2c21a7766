import { puzzleProfilePage } from '../man/puzzle-profile.ts'
import { puzzlectlPage } from '../man/puzzlectl.ts'
import { puzzledPage } from '../man/puzzled.ts'
import { puzzledYamlPage } from '../man/puzzled-yaml.ts'

console.log(
  JSON.stringify({
    'docs/man/puzzlectl.1': puzzlectlPage(),
    'docs/man/puzzled.8': puzzledPage(),
    'docs/man/puzzled.yaml.5': puzzledYamlPage(),
    'docs/man/puzzle-profile.5': puzzleProfilePage(),
  }),
)
