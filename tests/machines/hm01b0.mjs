/* Runs the model of the image sensor alone: argv has the path of hm01b0.mjs, a file of one scene, and a list of programs. A
 * program is a list of steps: bytes of one I2C transfer, 'read', 'shape' or 'frame'. Prints a list of results for each. */
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [library, scene, programs] = process.argv.slice(2);
const { Hm01b0, Refused } = await import(pathToFileURL(library).href);
const pixels = readFileSync(scene);

function run(program) {
    const sensor = new Hm01b0(), found = [];
    try {
        for (const step of program) {
            if (step === 'read') found.push(sensor.give());
            else if (step === 'shape') found.push(sensor.shape());
            else if (step === 'streams') found.push(sensor.streams);
            else if (step === 'frame') {
                found.push(Buffer.from(sensor.frame(pixels)).toString('base64'));
                sensor.frames++;
            } else {
                sensor.begin_write();
                step.forEach((byte) => sensor.take(byte));
            }
        }
    } catch (error) {
        if (!(error instanceof Refused)) throw error;
        found.push({ refused: error.message });
    }
    return found;
}
process.stdout.write(JSON.stringify(JSON.parse(programs).map(run)));
