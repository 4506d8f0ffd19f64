/** The public surface of Portcullis. */
export {
  type Admission,
  type AdmissionOptions,
  type AdmissionStore,
  createAdmission,
} from './admission/admission.ts'
